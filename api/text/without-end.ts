/** Without the characters like this one at its end. In linear time: a pattern such as `/x+$/` is tried again at each of many that are not at the end. */
export function withoutEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}
