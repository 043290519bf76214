import { test } from 'tap'
import { boardRevision } from './board-revision.ts'

/** Codes and meanings of the table in Raspberry Pi's documentation. */
const documented: readonly (readonly [code: number, board: string, megabytes: number, maker: string])[] = [
  [0x9020e1, '3A+ 1.1', 512, 'Sony UK'],
  [0xa02082, '3B 1.2', 1024, 'Sony UK'],
  [0xa020d4, '3B+ 1.4', 1024, 'Sony UK'],
  [0xb03115, '4B 1.5', 2048, 'Sony UK'],
  [0xc03111, '4B 1.1', 4096, 'Sony UK'],
  [0xd03115, '4B 1.5', 8192, 'Sony UK'],
  [0xc03130, '400 1.0', 4096, 'Sony UK'],
]

test('the codes of the documentation have the documented meanings', async (t) => {
  for (const [code, board, memoryMegabytes, maker] of documented)
    t.same(boardRevision(code), { board, memoryMegabytes, maker }, code.toString(16))
})

test('the bits of warranty and overvoltage change nothing', async (t) => {
  t.same(boardRevision(0xc03115 | (1 << 25) | (1 << 31)), boardRevision(0xc03115))
})

test('an older code means nothing, and an unknown type shows its number', async (t) => {
  t.equal(boardRevision(0x000e), undefined)
  t.match(boardRevision(0xc0fff0), { board: 'type 255 1.0', memoryMegabytes: 4096, maker: 'Sony UK' })
})
