/**
 * `100m`, `1536Mi` ⇄ numbers. A quantity is held exactly, in billionths of its unit, with the family it was written in
 * so that it is printed in the same one. Finer than a billionth is rounded away from zero.
 */

export type Quantity = {
  readonly nano: bigint
  /** `1500m` is decimal, `1536Mi` binary, `1e3` exponent. */
  readonly family: 'decimal' | 'binary' | 'exponent'
}

/** A quantity, or the text or bare number an object carries. */
export type QuantityLike = Quantity | string | number

export const zeroQuantity: Quantity = { nano: 0n, family: 'decimal' }

const billion = 1_000_000_000n
const mostWhole = 2n ** 63n - 1n // of a 64-bit integer
const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const
const written = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,9}))?$/
const longestText = 64
const mostExact = billion * 10n ** BigInt(longestText)
/** In billionths: with a sign and a suffix, less than this has no longer text than a quantity may have. */
const shortInAnyForm = 10n ** 60n

/** undefined when the text is not a quantity, or its canonical form is longer than that of a quantity: `5.5` becomes `5500m`. */
export function tryParseQuantity(text: string | number): Quantity | undefined {
  const quantity = parsed(String(text), longestText)
  if (quantity === undefined || magnitude(quantity.nano) < shortInAnyForm) return quantity
  return formatQuantity(quantity).length <= longestText ? quantity : undefined
}

function parsed(source: string, longest: number): Quantity | undefined {
  const match = source.length > longest ? null : written.exec(source)
  if (match === null) return undefined
  const [, sign, whole = '', fraction = match[4] ?? '', , binary, decimal, exponent] = match
  const digits = BigInt(`${whole}${fraction}`)
  const family = binary !== undefined ? 'binary' : exponent !== undefined ? 'exponent' : 'decimal'
  const thousands = decimal === undefined ? 0 : decimalSuffixes.indexOf(decimal as 'n') - 3
  const tens = 9 - fraction.length + thousands * 3 + Number(exponent ?? 0)
  const multiplied = binary === undefined ? digits : digits * 1024n ** BigInt(binarySuffixes.indexOf(binary as 'Ki'))
  // Kubernetes caps binary amounts only (ParseQuantity); decimal ones stay as they are written.
  const nano = atMost(timesTenTo(multiplied, tens), binary === undefined ? mostExact : mostWhole * billion)
  return { nano: sign === '-' ? -nano : nano, family }
}

/** Throws RangeError when the text is not a quantity: for texts that were checked before, and sums of those, which are longer. */
export function parseQuantity(text: string | number): Quantity {
  const quantity = parsed(String(text), 2 * longestText)
  if (quantity === undefined) throw new RangeError(`Not a quantity: ${JSON.stringify(text)}`)
  return quantity
}

/** In whole units, rounded away from zero, at most 2^63-1: bytes, cores, pods. */
export function quantityToNumber(quantity: QuantityLike): number {
  return Number(atMost(dividedUp(exact(quantity).nano, billion), mostWhole))
}

/** In thousandths, rounded away from zero, at most 2^63-1: millicores. */
export function milliValue(quantity: QuantityLike): number {
  return Number(atMost(dividedUp(exact(quantity).nano, 1_000_000n), mostWhole))
}

/** A whole number of units as a quantity. */
export function quantityOf(value: number, family: Quantity['family'] = 'decimal'): Quantity {
  return { nano: BigInt(Math.ceil(value)) * billion, family }
}

/** The sum, in the left one's family; in the right one's when the left is zero. */
export function addQuantities(left: QuantityLike, right: QuantityLike): Quantity {
  const [a, b] = [exact(left), exact(right)]
  return { nano: a.nano + b.nano, family: a.nano === 0n ? b.family : a.family }
}

/** Negative when `left` is less, 0 when equal, positive when more; whatever the families. */
export function compareQuantities(left: QuantityLike, right: QuantityLike): number {
  const [a, b] = [exact(left).nano, exact(right).nano]
  return a < b ? -1 : a > b ? 1 : 0
}

/** Canonical: the family kept, the largest suffix that leaves a whole number. */
export function formatQuantity(quantity: QuantityLike): string {
  const { nano, family } = exact(quantity)
  if (family === 'binary' && nano % billion === 0n && magnitude(nano) >= 1024n * billion) {
    const [mantissa, steps] = factored(nano / billion, 1024n, binarySuffixes.length - 1)
    return `${mantissa}${binarySuffixes[steps]}`
  }
  const [mantissa, steps] = factored(nano, 1000n, family === 'exponent' ? longestText : decimalSuffixes.length - 1)
  if (nano === 0n) return '0'
  if (family === 'exponent') return steps === 3 ? `${mantissa}` : `${mantissa}e${(steps - 3) * 3}`
  return `${mantissa}${decimalSuffixes[steps]}`
}

function exact(quantity: QuantityLike): Quantity {
  return typeof quantity === 'object' ? quantity : parseQuantity(quantity)
}

function timesTenTo(digits: bigint, tens: number): bigint {
  if (digits === 0n) return 0n
  if (tens > longestText + 9) return mostExact
  if (tens === 9) return digits * billion
  if (tens >= 0) return digits * 10n ** BigInt(tens)
  return tens < -2 * longestText ? 1n : dividedUp(digits, 10n ** BigInt(-tens))
}

function dividedUp(value: bigint, by: bigint): bigint {
  const whole = value / by
  if (value % by === 0n) return whole
  return value > 0n ? whole + 1n : whole - 1n
}

function factored(value: bigint, base: bigint, maxSteps: number): [bigint, number] {
  let steps = 0
  let rest = value
  while (steps < maxSteps && rest !== 0n && rest % base === 0n) {
    rest /= base
    steps++
  }
  return [rest, steps]
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value
}

function atMost(value: bigint, most: bigint): bigint {
  return value > most ? most : value
}
