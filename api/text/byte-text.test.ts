import { test } from 'tap'
import { byteText } from './byte-text.ts'

test('bytes are shown in the largest unit that they fill, with two digits at least', (t) => {
  t.same(
    [512, 2_048, 954 * 2 ** 20, 4 * 2 ** 30, 15.5 * 2 ** 30].map((bytes) => byteText(bytes)),
    ['512 B', '2.0 KiB', '954 MiB', '4.0 GiB', '16 GiB'],
  )
  t.end()
})

test('rounded down, at most as much is shown as there is', (t) => {
  t.same(
    [4.97 * 2 ** 30, 15.9 * 2 ** 30, 5 * 2 ** 30].map((bytes) => byteText(bytes, Math.floor)),
    ['4.9 GiB', '15 GiB', '5.0 GiB'],
  )
  t.end()
})
