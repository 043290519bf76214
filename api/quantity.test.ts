import { test } from 'tap'
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  milliValue,
  parseQuantity,
  quantityOf,
  quantityToNumber,
  tryParseQuantity,
} from './quantity.ts'

const canonical = (text: string | number) => formatQuantity(parseQuantity(text))

test('a quantity is printed in its family, with the largest suffix that keeps a whole number', async (t) => {
  const expected: [string | number, string][] = [
    ['0', '0'],
    ['0Ki', '0'],
    ['1500m', '1500m'],
    ['1000m', '1'],
    ['1.5', '1500m'],
    ['.5', '500m'],
    ['5.', '5'],
    ['+1', '1'],
    ['00012', '12'],
    ['1000', '1k'],
    ['1536Mi', '1536Mi'],
    ['1.5Gi', '1536Mi'],
    ['1024Ki', '1Mi'],
    ['1023', '1023'],
    ['0.5Ki', '512'],
    ['1500Ki', '1500Ki'],
    ['1.1Gi', '1181116006400m'],
    ['1e3', '1e3'],
    ['1E3', '1e3'],
    ['12e2', '1200'],
    ['1E', '1E'],
    ['-2Mi', '-2Mi'],
    ['0.0000000001', '1n'],
    ['-0.0000000001', '-1n'],
    [4, '4'],
    [0.25, '250m'],
    ['10Ei', '9223372036854775807'],
    ['10E', '10E'],
    ['9223372036854775808', '9223372036854775808'],
    ['1e30', '1e30'],
    ['-1e30', '-1e30'],
    ['1e-999999', '1e-9'],
  ]
  for (const [text, printed] of expected) {
    t.equal(canonical(text), printed, `${text} is ${printed}`)
  }
})

test('a text that is not a quantity is recognised without throwing', async (t) => {
  for (const text of [
    '',
    ' 1',
    '1 ',
    '1kb',
    '1ki',
    'Mi',
    '1e',
    '1.2.3',
    '--1',
    '1Ki1',
    '0x10',
    '1K',
    '.',
    '9'.repeat(65),
  ]) {
    t.equal(tryParseQuantity(text), undefined, JSON.stringify(text))
  }
  t.equal(tryParseQuantity(Number.NaN), undefined)
  t.throws(() => parseQuantity('lots'), { message: 'Not a quantity: "lots"' })
})

test('values round up, and sums keep the family of the left', async (t) => {
  t.equal(quantityToNumber('1.1Gi'), 1181116007)
  t.equal(quantityToNumber('100m'), 1)
  t.equal(quantityToNumber(1e21), 2 ** 63, 'no more than 64 bits hold')
  t.equal(quantityToNumber('1e999999'), 2 ** 63)
  t.equal(milliValue('250m'), 250)
  t.equal(milliValue('1u'), 1)
  t.equal(milliValue('-1u'), -1)
  t.equal(formatQuantity(addQuantities('1Gi', '1G')), '2073741824')
  t.equal(formatQuantity(addQuantities('1G', '24Mi')), '1025165824')
  t.equal(formatQuantity(addQuantities('0', '1Mi')), '1Mi', 'a zero has no family to keep')
  t.equal(formatQuantity(quantityOf(2 ** 30, 'binary')), '1Gi')
})

test('comparison is exact over families', async (t) => {
  t.equal(compareQuantities('1Gi', '1G'), 1)
  t.equal(compareQuantities('1000m', '1'), 0)
  t.equal(compareQuantities('1e3', '1Ki'), -1)
})

test('amounts beyond 64 bits keep their text and order, and are the largest 64-bit number where one is needed', async (t) => {
  t.equal(quantityToNumber('10E'), 2 ** 63)
  t.equal(milliValue('10E'), 2 ** 63)
  t.ok(compareQuantities('20E', '10E') > 0)
  t.ok(compareQuantities('1e999999999', '1e60') >= 0, 'an exponent without end costs no memory')
})

test('every suffix is read and printed', async (t) => {
  for (const suffix of ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']) {
    t.equal(canonical(`7${suffix}`), `7${suffix}`)
    t.equal(canonical(`-7${suffix}`), `-7${suffix}`)
  }
  for (const [index, suffix] of ['Ki', 'Mi', 'Gi', 'Ti', 'Pi'].entries()) {
    t.equal(canonical(`7${suffix}`), `7${suffix}`)
    t.equal(quantityToNumber(`7${suffix}`), 7 * 1024 ** (index + 1))
  }
  t.equal(canonical('7Ei'), '7Ei')
  for (const text of ['1e-9', '5e-3', '5', '5e3', '5e27']) t.equal(canonical(text), text)
  t.equal(canonical('0e3'), '0')
})

test('negative amounts are rounded away from zero and keep their family', async (t) => {
  t.equal(canonical('-1.5Gi'), '-1536Mi')
  t.equal(canonical('-1023'), '-1023')
  t.equal(canonical('-512Ki'), '-512Ki')
  t.equal(canonical('-0.5Ki'), '-512')
  t.equal(quantityToNumber('-1.5'), -2)
  t.equal(quantityToNumber('-2'), -2)
  t.equal(milliValue('-0.0015'), -2)
  t.equal(compareQuantities('-1', '1'), -1)
  t.equal(compareQuantities('1', '-1'), 1)
})

test('a text of 64 characters is the longest quantity', async (t) => {
  t.equal(canonical('9'.repeat(64)), '9'.repeat(64))
  t.equal(tryParseQuantity('9'.repeat(65)), undefined)
  t.equal(tryParseQuantity(`1e${'9'.repeat(10)}`), undefined, 'an exponent has at most nine digits')
})

test('what is accepted is a quantity in its canonical form too, and so is a sum', async (t) => {
  const nines = (count: number) => '9'.repeat(count)
  for (const text of [`${nines(55)}.99999999`, `${nines(62)}.9`, `-${nines(61)}.9`, `${nines(62)}.9e0`]) {
    t.equal(tryParseQuantity(text), undefined, text)
  }
  for (const text of [nines(64), `-${nines(63)}`, `${nines(54)}.999999999`, `${nines(62)}e9`, `${nines(60)}Ki`]) {
    t.equal(canonical(canonical(text)), canonical(text), text)
    t.ok(tryParseQuantity(canonical(text)), text)
  }
  const sum = formatQuantity(addQuantities(nines(64), nines(64)))
  t.equal(sum.length, 65)
  t.equal(quantityToNumber(sum), 2 ** 63)
})

test('a fraction of a whole unit counts as one, and a quantity is its own', async (t) => {
  t.same(quantityOf(1.2), parseQuantity('2'))
  t.same(quantityOf(3, 'binary'), { nano: 3_000_000_000n, family: 'binary' })
  t.equal(quantityToNumber(parseQuantity('1500m')), 2)
  t.equal(milliValue(0.0001), 1)
  t.equal(formatQuantity(addQuantities('1m', 1)), '1001m')
  t.equal(formatQuantity(addQuantities('-1Mi', '1Mi')), '0')
})
