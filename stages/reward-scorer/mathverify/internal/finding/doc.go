// Package finding says what of a response is its answer.
//
// It tries rules, from the surest sign to the least: the last box (boxes that
// "and" or a comma joins are one answer; a sentence behind it that declares
// another one counts), <answer> and ####, "the answer is", the letter of a
// choice, what the last sentence gives, the last formula with those joined to it.
// What was thought before </think> is no answer. Where a rule has several
// candidates, one that reads as an answer, in which every word is understood, is
// preferred; a sentence that denies what would be taken is taken whole.
package finding
