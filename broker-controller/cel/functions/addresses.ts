/** IP addresses and ranges (apiserver/pkg/cel/library/ip.go, cidr.go). */
import { canonicalIPv6, isIPv4 } from '../../../api/text/ip-address.ts'
import { formatIPv6, parseIPv6 } from '../../../api/text/ipv6-range.ts'
import { type CelOutcome, noSuchOverload, OpaqueValue, type Value } from '../values/value.ts'
import {
  type FunctionDefinition,
  type FunctionTable,
  fail,
  traversal,
  traversalFactor,
  valueSize,
} from './definition.ts'

type Version = 4 | 6

class AddressValue extends OpaqueValue {
  readonly typeName = 'net.IP'
  readonly version: Version
  readonly bits: bigint

  constructor(version: Version, bits: bigint) {
    super()
    this.version = version
    this.bits = bits
  }

  override get costSize(): number {
    return this.version === 4 ? 4 : 16
  }

  get text(): string {
    if (this.version === 6) return formatIPv6(this.bits)
    return [24n, 16n, 8n, 0n].map((shift) => (this.bits >> shift) & 255n).join('.')
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof AddressValue && other.version === this.version && other.bits === this.bits
  }
}

const width = (version: Version) => (version === 4 ? 32n : 128n)

class RangeValue extends OpaqueValue {
  readonly typeName = 'net.CIDR'
  readonly address: AddressValue
  readonly prefix: number

  constructor(address: AddressValue, prefix: number) {
    super()
    this.address = address
    this.prefix = prefix
  }

  override get costSize(): number {
    return Math.ceil(this.prefix / 8)
  }

  get text(): string {
    return `${this.address.text}/${this.prefix}`
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof RangeValue && other.prefix === this.prefix && other.address.equals(this.address)
  }

  masked(): RangeValue {
    const { version, bits } = this.address
    const rest = width(version) - BigInt(this.prefix)
    return new RangeValue(new AddressValue(version, (bits >> rest) << rest), this.prefix)
  }

  has({ version, bits }: AddressValue): boolean {
    if (version !== this.address.version) return false
    const rest = width(version) - BigInt(this.prefix)
    return bits >> rest === this.address.bits >> rest
  }
}

const mapped = 0xffffn

function addressOf(text: string): AddressValue | string {
  if (isIPv4(text)) {
    return new AddressValue(
      4,
      text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n),
    )
  }
  const bits = parseIPv6(text)
  if (text.includes('%')) return `IP address "${text}" with zone value is not allowed`
  if (bits === undefined) return `IP Address "${text}" parse error during conversion from string`
  return bits >> 32n === mapped ? `IPv4-mapped IPv6 address "${text}" is not allowed` : new AddressValue(6, bits)
}

function rangeOf(text: string): RangeValue | string {
  const why = `network address parse error during conversion from string: "${text}"`
  const [, address = '', prefix = ''] = /^([^/]{1,64})\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const read = addressOf(address)
  if (typeof read === 'string') return read.includes('mapped') ? read : why
  return Number(prefix) > Number(width(read.version)) ? why : new RangeValue(read, Number(prefix))
}

const ofText =
  (call: (text: string) => CelOutcome) =>
  ([text]: readonly Value[]) =>
    typeof text === 'string' ? call(text) : noSuchOverload
const orFail = (read: Value): CelOutcome => (typeof read === 'string' ? fail(read) : read)

const ofAddress = (result: 'bool' | 'int', call: (address: AddressValue) => CelOutcome): FunctionDefinition => ({
  overloads: [`net.IP.(): ${result}`],
  call: ([address]) => (address instanceof AddressValue ? call(address) : noSuchOverload),
})

const ofRange = (result: string, call: (range: RangeValue) => CelOutcome): FunctionDefinition => ({
  overloads: [`net.CIDR.(): ${result}`],
  call: ([range]) => (range instanceof RangeValue ? call(range) : noSuchOverload),
})

function isLinkLocal({ version, bits }: AddressValue): boolean {
  return version === 4 ? bits >> 16n === 0xa9fen : bits >> 118n === 0x3fan
}

function isMulticast({ version, bits }: AddressValue): boolean {
  return version === 4 ? bits >> 28n === 0xen : bits >> 120n === 0xffn
}

function isLinkLocalMulticast({ version, bits }: AddressValue): boolean {
  return version === 4 ? bits >> 8n === 0xe00000n : bits >> 120n === 0xffn && ((bits >> 112n) & 0xfn) === 2n
}

function isLoopback({ version, bits }: AddressValue): boolean {
  return version === 4 ? bits >> 24n === 127n : bits === 1n
}

const broadcast = 0xffffffffn

/** As Go's netip.Addr.IsGlobalUnicast: private addresses are. */
function isGlobalUnicast(address: AddressValue): boolean {
  const isBroadcast = address.version === 4 && address.bits === broadcast
  const isOther = isLoopback(address) || isMulticast(address) || isLinkLocal(address)
  return address.bits !== 0n && !isBroadcast && !isOther
}

/** Whether the range has the other one. */
function hasRange(wide: RangeValue, narrow: RangeValue): boolean {
  return wide.prefix <= narrow.prefix && wide.has(narrow.address)
}

const containsCost =
  (parts: number, more: number) =>
  ([range, other]: readonly Value[]) =>
    Math.ceil(valueSize(range) * parts * traversalFactor) +
    more +
    (typeof other === 'string' ? Math.ceil(other.length * traversalFactor) : 0)

export const addresses: FunctionTable = {
  isIP: {
    overloads: ['(string): bool'],
    cost: traversal(),
    call: ofText((text) => typeof addressOf(text) !== 'string'),
  },
  ip: {
    overloads: ['(string): net.IP', 'net.CIDR.(): net.IP'],
    cost: (args) => (typeof args[0] === 'string' ? traversal()(args) : 1),
    call: ([value]) =>
      value instanceof RangeValue ? value.address : ofText((text) => orFail(addressOf(text)))([value ?? null]),
  },
  'ip.isCanonical': {
    overloads: ['(string): bool'],
    cost: traversal(2),
    call: ofText((text) => {
      const address = addressOf(text)
      return typeof address === 'string' ? fail(address) : (isIPv4(text) ? text : canonicalIPv6(text)) === text
    }),
  },
  family: ofAddress('int', ({ version }) => version),
  isUnspecified: ofAddress('bool', ({ bits }) => bits === 0n),
  isLoopback: ofAddress('bool', isLoopback),
  isLinkLocalMulticast: ofAddress('bool', isLinkLocalMulticast),
  isLinkLocalUnicast: ofAddress('bool', isLinkLocal),
  isGlobalUnicast: ofAddress('bool', isGlobalUnicast),
  isCIDR: {
    overloads: ['(string): bool'],
    cost: traversal(),
    call: ofText((text) => typeof rangeOf(text) !== 'string'),
  },
  cidr: { overloads: ['(string): net.CIDR'], cost: traversal(), call: ofText((text) => orFail(rangeOf(text))) },
  prefixLength: ofRange('int', ({ prefix }) => prefix),
  masked: ofRange('net.CIDR', (range) => range.masked()),
  containsIP: {
    overloads: ['net.CIDR.(net.IP): bool', 'net.CIDR.(string): bool'],
    cost: containsCost(2, 0),
    call: ([range, other]) => {
      const address = typeof other === 'string' ? addressOf(other) : other
      if (!(range instanceof RangeValue)) return noSuchOverload
      if (typeof address === 'string') return fail(address)
      return address instanceof AddressValue ? range.has(address) : noSuchOverload
    },
  },
  containsCIDR: {
    overloads: ['net.CIDR.(net.CIDR): bool', 'net.CIDR.(string): bool'],
    cost: containsCost(3, 1),
    call: ([range, other]) => {
      const narrow = typeof other === 'string' ? rangeOf(other) : other
      if (!(range instanceof RangeValue)) return noSuchOverload
      if (typeof narrow === 'string') return fail(narrow)
      return narrow instanceof RangeValue ? hasRange(range, narrow) : noSuchOverload
    },
  },
}
