/** Characters as the language counts them: code points. */
import type { Meter } from './meter.ts'

/** Whether each character is one code unit: then indices are those of JavaScript. */
export function isPlain(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text)
}

/** They have a length and are read by index. */
export function charactersOf(text: string): string | readonly string[] {
  return isPlain(text) ? text : [...text]
}

/** Characters that are looked at in the time of one step. */
const plainPerStep = 32

/** `charactersOf`, with steps taken for a long text: functions that cost 1, whatever the text, read all of it here. */
export function countedCharacters(text: string, meter: Meter): string | readonly string[] {
  meter.step(text.length / plainPerStep)
  const characters = charactersOf(text)
  if (typeof characters !== 'string') meter.step(characters.length)
  return characters
}
