// Package template renders a model's chat template: what a conversation looks like as the
// text that the model was trained on.
//
// Reads a model's folder (chat_template.jinja, or tokenizer_config.json with chat_template
// and the special tokens that a template may name), or a template's text. Jinja itself is
// a library's; what is ours is that the context is what Hugging Face's
// apply_chat_template gives a template: messages and tools as ordered dictionaries (their
// order shows in the text), numbers as they were written, raise_exception.
//
// Promises: the same conversation gives the same text, always: strftime_now is not
// defined, and templates that ask for it fall back to their fixed date, because a prompt
// must not change at midnight between two turns. A template's own complaint is an error
// (ErrRefused) with its words. Nothing is tokenised here; see package tokenizer.
package template
