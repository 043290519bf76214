/** Characters as the language counts them: code points. */

/** Whether each character is one code unit: then indices are those of JavaScript. */
export function isPlain(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text)
}

/** They have a length and are read by index. */
export function charactersOf(text: string): string | readonly string[] {
  return isPlain(text) ? text : [...text]
}
