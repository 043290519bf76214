import { test } from 'tap'
import { crc64 } from './crc64.ts'

const sumOf = (...pieces: readonly string[]) => {
  const sum = crc64()
  for (const piece of pieces) sum.add(Buffer.from(piece))
  return sum.digest().toString('hex')
}

test('the checksum is that of the catalogue of CRC algorithms (CRC-64/GO-ISO), whatever the pieces are', (t) => {
  t.equal(sumOf('123456789'), 'b90956c775a41001')
  t.equal(sumOf('1234', '', '56789'), 'b90956c775a41001')
  t.equal(sumOf(), '0000000000000000')
  t.end()
})
