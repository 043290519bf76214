/** Kubernetes' quantities (apiserver/pkg/cel/library/quantity.go). */
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  type Quantity,
  tryParseQuantity,
} from '../../../api/quantity.ts'
import { type CelOutcome, Double, intOf, isInt, noSuchOverload, OpaqueValue, type Value } from '../values/value.ts'
import { type FunctionDefinition, type FunctionTable, fail, traversal } from './definition.ts'

const billion = 1_000_000_000n

class QuantityValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Quantity'
  readonly quantity: Quantity

  constructor(quantity: Quantity) {
    super()
    this.quantity = quantity
  }

  get text(): string {
    return formatQuantity(this.quantity)
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && compareQuantities(this.quantity, other.quantity) === 0
  }
}

const ofOne = (signature: string, call: (quantity: Quantity) => CelOutcome): FunctionDefinition => ({
  overloads: [signature],
  call: ([value]) => (value instanceof QuantityValue ? call(value.quantity) : noSuchOverload),
})

const ofTwo = (result: 'bool' | 'int', call: (order: number) => CelOutcome): FunctionDefinition => ({
  overloads: [`kubernetes.Quantity.(kubernetes.Quantity): ${result}`],
  call: ([left, right]) =>
    left instanceof QuantityValue && right instanceof QuantityValue
      ? call(compareQuantities(left.quantity, right.quantity))
      : noSuchOverload,
})

const sum = (sign: 1n | -1n): FunctionDefinition => ({
  overloads: ['kubernetes.Quantity', 'int'].map((other) => `kubernetes.Quantity.(${other}): kubernetes.Quantity`),
  call: ([left, right = null]) => {
    if (!(left instanceof QuantityValue)) return noSuchOverload
    const other: Quantity | undefined = isInt(right)
      ? { nano: BigInt(right) * billion, family: 'decimal' }
      : right instanceof QuantityValue
        ? right.quantity
        : undefined
    if (other === undefined) return noSuchOverload
    return new QuantityValue(addQuantities(left.quantity, { ...other, nano: sign * other.nano }))
  },
})

function whole({ nano }: Quantity): Value | undefined {
  return nano % billion === 0n ? intOf(nano / billion) : undefined
}

const sign = ({ nano }: Quantity) => (nano < 0n ? -1 : nano > 0n ? 1 : 0)

function read([text]: readonly Value[]): Quantity | undefined {
  return typeof text === 'string' ? tryParseQuantity(text) : undefined
}

export const quantities: FunctionTable = {
  isQuantity: { overloads: ['(string): bool'], cost: traversal(), call: (args) => read(args) !== undefined },
  quantity: {
    overloads: ['(string): kubernetes.Quantity'],
    cost: traversal(),
    call: (args) => {
      const quantity = read(args)
      const pattern = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
      return quantity === undefined ? fail(pattern) : new QuantityValue(quantity)
    },
  },
  sign: ofOne('kubernetes.Quantity.(): int', sign),
  isInteger: ofOne('kubernetes.Quantity.(): bool', (quantity) => whole(quantity) !== undefined),
  asInteger: ofOne(
    'kubernetes.Quantity.(): int',
    (quantity) => whole(quantity) ?? fail('cannot convert value to integer'),
  ),
  asApproximateFloat: ofOne('kubernetes.Quantity.(): double', ({ nano }) => new Double(Number(nano) / Number(billion))),
  isGreaterThan: ofTwo('bool', (order) => order > 0),
  isLessThan: ofTwo('bool', (order) => order < 0),
  compareTo: ofTwo('int', (order) => Math.sign(order)),
  add: sum(1n),
  sub: sum(-1n),
}
