// Package tokenizer turns text into the token ids of a model, and back, exactly as the
// model's own tokenizer does.
//
// Reads a Hugging Face tokenizer.json of the byte-level BPE kind (GPT-2, Llama 3, Qwen 2
// to 3.6, SmolLM2 and their relatives). A file of another kind, or one with a part that
// this package does not know, is refused with ErrUnsupported and the part's name: ids that
// are nearly right train a model on text that nobody wrote.
//
// Promises:
//   - Encode gives the ids that Hugging Face's library gives with add_special_tokens=False
//     (no token is added at the ends: a chat template writes those itself).
//   - Decode gives back the bytes of the ids. Decode(Encode(s)) is s for every s, valid
//     UTF-8 or not, unless the file asks for NFC and s is not in it.
//   - Time is linear in the length of the text, but for one factor of log(length) in a
//     piece without a boundary. A Tokenizer may be used by several goroutines.
//
// The steps of Encode, each in a file: added tokens are cut out of the text (added.go),
// what lies between is normalised (normalise.go), cut into pieces (pieces.go), and each
// piece is merged (merge.go). The algorithm is byte pair encoding as in Sennrich et al.
// (2016), over bytes as in Radford et al. (2019).
package tokenizer
