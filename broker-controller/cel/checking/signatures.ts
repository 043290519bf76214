/** Signatures of functions as text: `string.startsWith(string): bool`, `<A>list<A>.indexOf(A): int`. */
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  opaqueType,
  optionalType,
  parameterType,
  stringType,
  timestampType,
  typeType,
  uintType,
} from './types.ts'

export type Overload = {
  /** The signature, which identifies it. */
  readonly id: string
  readonly isMember: boolean
  /** With the target first. */
  readonly parameters: readonly CelType[]
  readonly result: CelType
  /** Names of the parameters of types: single capital letters. */
  readonly generic: ReadonlySet<string>
}

const simpleTypes: ReadonlyMap<string, CelType> = new Map(
  [
    ...[dynType, nullType, boolType, intType, uintType, doubleType, stringType, bytesType, timestampType],
    ...[durationType],
  ].map((type) => [type.name, type]),
)

/** `target.(parameters): result`, or without the target and the dot. The signature is one of ours. */
export function overloadOf(signature: string): Overload {
  const reader = new SignatureReader(signature)
  const target = reader.is('(') ? undefined : reader.type()
  if (target !== undefined) reader.take('.')
  reader.take('(')
  const parameters = target === undefined ? [] : [target]
  while (!reader.is(')')) {
    parameters.push(reader.type())
    if (!reader.is(')')) reader.take(',')
  }
  reader.take('):')
  const result = reader.type()
  return { id: signature, isMember: target !== undefined, parameters, result, generic: reader.generic }
}

class SignatureReader {
  readonly generic = new Set<string>()
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text.replaceAll(' ', '')
  }

  is(sign: string): boolean {
    return this.#text.startsWith(sign, this.#at)
  }

  take(sign: string): void {
    if (!this.is(sign)) throw new RangeError(`${this.#text}: ${sign} is missing at ${this.#at}`)
    this.#at += sign.length
  }

  type(): CelType {
    // A dot before a bracket ends the type of a target: `net.IP.(string): bool`.
    const name = /^[A-Za-z]\w*(?:\.[A-Za-z]\w*)*/.exec(this.#text.slice(this.#at))?.[0] ?? ''
    this.#at += name.length
    const parameters: CelType[] = []
    if (this.is('<')) {
      do {
        this.#at++
        parameters.push(this.type())
      } while (this.is(','))
      this.take('>')
    }
    const [first = dynType, second = dynType] = parameters
    if (name === 'list') return listType(first)
    if (name === 'map') return mapType(first, second)
    if (name === 'optional') return optionalType(first)
    if (name === 'type') return typeType(first)
    const simple = simpleTypes.get(name)
    if (simple !== undefined) return simple
    if (name.length > 1) return opaqueType(name)
    this.generic.add(name)
    return parameterType(name)
  }
}
