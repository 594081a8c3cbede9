// Package chat writes conversations as simpolicy's policy reads them, in the manner
// of Qwen3.5's chat template, and reads them back.
//
// Each message is <|im_start|>ROLE, a newline, its content, <|im_end|>, a newline.
// Tools are described at the head of the system message. What a tool answered stands
// in a user message between <tool_response> and </tool_response>; answers in a row
// share one message. An assistant message after the last question of a user begins
// with an empty thought, "<think>\n\n</think>\n\n"; earlier ones bear none. The
// generation prompt is "<|im_start|>assistant\n" and then, with enable_thinking
// false, that empty thought; with enable_thinking true (the default, as in Qwen3.5)
// an open "<think>\n".
//
// Promises: rendering is a function of its input alone; the order of tools, their
// keys and a call's arguments is kept as given.
package chat
