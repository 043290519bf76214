/** Types of expressions, and which may stand for which (cel-go's checker/types.go). */

type Kind =
  | 'dyn'
  | 'error'
  | 'null'
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'timestamp'
  | 'duration'
  | 'list'
  | 'map'
  | 'optional'
  | 'type'
  | 'opaque'
  | 'object'
  | 'parameter'

export type CelType = {
  readonly kind: Kind
  /** As messages have it, without parameters. */
  readonly name: string
  /** A list's item type, a map's key and value types, the type in an optional or a type. */
  readonly parameters: readonly CelType[]
  /** An object's fields, by the names that expressions give them. */
  readonly fields?: ReadonlyMap<string, CelType>
}

const simple = (kind: Kind, name: string = kind): CelType => ({ kind, name, parameters: [] })

export const dynType = simple('dyn')
export const errorType = simple('error', '!error!')
export const nullType = simple('null', 'null')
export const boolType = simple('bool')
export const intType = simple('int')
export const uintType = simple('uint')
export const doubleType = simple('double')
export const stringType = simple('string')
export const bytesType = simple('bytes')
export const timestampType = simple('timestamp')
export const durationType = simple('duration')

export const listType = (item: CelType): CelType => ({ kind: 'list', name: 'list', parameters: [item] })
export const mapType = (key: CelType, value: CelType): CelType => ({
  kind: 'map',
  name: 'map',
  parameters: [key, value],
})
export const optionalType = (of: CelType): CelType => ({ kind: 'optional', name: 'optional_type', parameters: [of] })
export const typeType = (of: CelType): CelType => ({ kind: 'type', name: 'type', parameters: [of] })
export const opaqueType = (name: string): CelType => simple('opaque', name)
export const parameterType = (name: string): CelType => simple('parameter', name)
export const objectType = (name: string, fields: ReadonlyMap<string, CelType>): CelType => ({
  ...simple('object', name),
  fields,
})

/** `map(string, list(int))`. */
export function typeText({ kind, name, parameters }: CelType): string {
  if (kind === 'parameter') return 'dyn'
  return parameters.length === 0 ? name : `${name}(${parameters.map(typeText).join(', ')})`
}

export function isDyn({ kind }: CelType): boolean {
  return kind === 'dyn' || kind === 'error'
}

/** The same kind, with the same parameters. */
export function sameType(a: CelType, b: CelType): boolean {
  if (a === b) return true
  return a.kind === b.kind && a.name === b.name && sameTypes(a.parameters, b.parameters)
}

function sameTypes(a: readonly CelType[], b: readonly CelType[]): boolean {
  return a.length === b.length && a.every((one, index) => sameType(one, b[index] ?? errorType))
}

/** What is found out about the parameters of types while an expression is checked. */
export class Substitutions {
  readonly #known = new Map<string, CelType>()
  /** What was known before, of what the present question has changed. */
  #changes: (readonly [name: string, before: CelType | undefined])[] = []
  #made = 0

  fresh(): CelType {
    return parameterType(`_var${this.#made++}`)
  }

  /** Whether a value of each type may stand where the other one is wanted; records what that implies for parameters. */
  assignable(given: readonly CelType[], wanted: readonly CelType[]): boolean {
    this.#changes = []
    if (given.length === wanted.length && given.every((one, index) => this.#fits(one, wanted[index] ?? errorType)))
      return true
    for (const [name, before] of this.#changes.reverse()) {
      if (before === undefined) this.#known.delete(name)
      else this.#known.set(name, before)
    }
    return false
  }

  #set(name: string, type: CelType): void {
    this.#changes.push([name, this.#known.get(name)])
    this.#known.set(name, type)
  }

  /** The type with what is known of its parameters; `freeIsDyn`: those of which nothing is known are dyn. */
  resolved(type: CelType, freeIsDyn = false): CelType {
    if (type.kind === 'parameter') {
      const known = this.#known.get(type.name)
      if (known !== undefined) return this.resolved(known, freeIsDyn)
      return freeIsDyn ? dynType : type
    }
    if (type.parameters.length === 0) return type
    return { ...type, parameters: type.parameters.map((one) => this.resolved(one, freeIsDyn)) }
  }

  #fits(one: CelType, other: CelType): boolean {
    if (other.kind === 'parameter') {
      const { holds, isKnown } = this.#substituted(one, other)
      if (holds || isKnown) return holds
    }
    if (one.kind === 'parameter') return this.#substituted(other, one).holds
    if (isDyn(one) || isDyn(other)) return true
    if (one.kind === 'null') return isNullable(other)
    if (other.kind === 'null') return isNullable(one)
    if (one.kind !== other.kind || (one.kind !== 'type' && one.name !== other.name)) return false
    if (one.kind === 'type') return true
    return (
      one.parameters.length === other.parameters.length &&
      one.parameters.every((parameter, index) => this.#fits(parameter, other.parameters[index] ?? errorType))
    )
  }

  #substituted(type: CelType, parameter: CelType): { readonly holds: boolean; readonly isKnown: boolean } {
    if (sameType(type, parameter)) return { holds: true, isKnown: true }
    const known = this.#known.get(parameter.name)
    if (known !== undefined) {
      if (sameType(type, known)) return { holds: true, isKnown: true }
      if (!this.#fits(type, known)) return { holds: false, isKnown: true }
      const general = mostGeneral(type, known)
      if (!this.#mentions(general, parameter)) this.#set(parameter.name, general)
      return { holds: true, isKnown: true }
    }
    if (this.#mentions(type, parameter)) return { holds: false, isKnown: false }
    this.#set(parameter.name, type)
    return { holds: true, isKnown: false }
  }

  #mentions(type: CelType, parameter: CelType): boolean {
    if (sameType(type, parameter)) return true
    const known = type.kind === 'parameter' ? this.#known.get(type.name) : undefined
    if (known !== undefined) return this.#mentions(known, parameter)
    return type.parameters.some((one) => this.#mentions(one, parameter))
  }
}

function isNullable({ kind }: CelType): boolean {
  return ['null', 'duration', 'timestamp', 'object', 'opaque', 'optional', 'dyn', 'error'].includes(kind)
}

/** The more general of two types that unify. */
export function mostGeneral(a: CelType, b: CelType): CelType {
  return isAsGeneral(a, b) ? a : b
}

function isAsGeneral(a: CelType, b: CelType): boolean {
  if (isDyn(a) || a.kind === 'parameter') return true
  if (a.kind === 'null') return false
  if (isDyn(b) || b.kind === 'parameter' || a.kind !== b.kind || a.name !== b.name) return b.kind === 'null'
  return a.parameters.every((one, index) => isAsGeneral(one, b.parameters[index] ?? errorType))
}
