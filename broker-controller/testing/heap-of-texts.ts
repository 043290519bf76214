/** What texts take on the heap. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/**
 * Equal texts are indistinguishable in JavaScript, so their memory is measured: of `count` texts of about 500 characters. The smallest
 * of three measurements is given, for the machine code that V8 makes beside one (some 400 kB) is on the same heap.
 */
export function heapOfTexts(
  count: number,
  keep: (text: string) => string,
  textOf = (_: number) => 'x'.repeat(490),
): number {
  return Math.min(...[0, 1, 2].map((run) => measuredHeap(count, keep, (i) => textOf(run * count + i))))
}

function measuredHeap(count: number, keep: (text: string) => string, textOf: (i: number) => string): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: count }, (_, i) => keep(JSON.parse(JSON.stringify(textOf(i))) as string))
  collectGarbage()
  const bytes = process.memoryUsage().heapUsed - before
  if (kept.some((text) => text.length < 490)) throw new Error('A text was lost')
  return bytes
}
