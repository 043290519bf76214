import { test } from 'tap'
import { frameReader, withoutInnerTimes } from './stream-frames.ts'

function frame(stream: number, text: string): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt8(stream)
  head.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([head, Buffer.from(text)])
}

test('frames are found however the stream is cut', async (t) => {
  const bytes = Buffer.concat([frame(1, 'one\n'), frame(2, ''), frame(2, 'two\n'), frame(1, 'three')])
  for (const size of [1, 3, 8, 11, bytes.length]) {
    const read = frameReader()
    const frames = []
    for (let at = 0; at < bytes.length; at += size) frames.push(...read(bytes.subarray(at, at + size)))
    t.same(
      frames.map(({ stream, payload }) => [stream, String(payload)]),
      [
        ['stdout', 'one\n'],
        ['stderr', ''],
        ['stderr', 'two\n'],
        ['stdout', 'three'],
      ],
      `${size} bytes at a time`,
    )
  }
})

test('an invalid or too long frame is refused before it is kept', async (t) => {
  t.throws(() => frameReader()(Buffer.from('hello, world')), /frames/)
  t.throws(() => frameReader()(Buffer.from([1, 0, 0, 0, 0xff, 0, 0, 0])), /frames/)
})

test('a line that Docker cut has one time', async (t) => {
  const time = '2026-01-02T03:04:05.123456789Z '
  const join = withoutInnerTimes()
  const text = [
    ['stdout', `${time}aaa`],
    ['stderr', `${time}error\n`],
    ['stdout', `${time}bbb`],
    ['stdout', `${time}ccc\n`],
    ['stdout', `${time}next\n`],
  ] as const
  t.same(
    text.map(([stream, line]) => String(join({ stream, payload: Buffer.from(line) }))),
    [`${time}aaa`, `${time}error\n`, 'bbb', 'ccc\n', `${time}next\n`],
  )
})
