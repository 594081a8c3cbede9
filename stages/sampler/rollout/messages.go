package rollout

import "github.com/sluice-rl/sluice/schemas/sluicev1"

// Message is one message of a conversation, as chat templates take them.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// SystemPrompt is what a policy with the tool is told, unless an operator says
// otherwise.
const SystemPrompt = `You solve mathematics problems. You have one tool, code_interpreter, which runs a Python program and shows you what it printed.

How to use it:
- Make at most one call in a turn, and write nothing after the call.
- Print every value that you want to see: only what is printed comes back.
- Every run starts fresh: define and import again whatever you need.
- A program has a few seconds and little memory, and no files or network that last.
- If a program fails you get its error: read it, mend the program and try again.

When you know the answer, end with exactly one line that holds it as \boxed{answer}. Never call the tool and answer in the same turn.`

// textOnlyRequest follows the problem where there is no tool.
const textOnlyRequest = "\n\nReason step by step, then end with exactly one line that holds the final answer as \\boxed{answer}."

// Conversation is the messages of a prompt: with the tool, the system prompt and the
// problem; without it, the problem and a request to reason and box the answer.
func Conversation(p *sluicev1.Prompt, systemPrompt string) []Message {
	question := p.GetProblem().GetQuestion()
	if !p.GetToolEnabled() {
		return []Message{{Role: "user", Content: question + textOnlyRequest}}
	}
	return []Message{{Role: "system", Content: systemPrompt}, {Role: "user", Content: question}}
}
