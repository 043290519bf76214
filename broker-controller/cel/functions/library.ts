/** All functions that an expression can call: those of the language, and the libraries of Kubernetes 1.32 (apiserver/pkg/cel/environment). */
import { type Overload, overloadOf } from '../checking/signatures.ts'
import { addresses } from './addresses.ts'
import { accessFunctions } from './authorization.ts'
import { conversions } from './conversions.ts'
import type { FunctionDefinition } from './definition.ts'
import { namedFormats } from './formats.ts'
import { lists } from './lists.ts'
import { lazyOperators, operators } from './operators.ts'
import { optionals } from './optionals.ts'
import { patterns } from './patterns.ts'
import { quantities } from './quantities.ts'
import { texts } from './texts.ts'
import { urls } from './urls.ts'

const tables = [
  ...[operators, conversions, texts, patterns, lists, optionals],
  ...[addresses, quantities, urls, namedFormats, accessFunctions],
]

const definitions: ReadonlyMap<string, FunctionDefinition> = new Map(tables.flatMap((table) => Object.entries(table)))

let declared: ReadonlyMap<string, readonly Overload[]> | undefined

/** By name. Made when it is first needed: most controllers have no expression to check. */
export function declaredFunctions(): ReadonlyMap<string, readonly Overload[]> {
  declared ??= new Map([
    ...[...definitions].map(([name, { overloads }]) => [name, overloads.map(overloadOf)] as const),
    ...Object.entries(lazyOperators).map(([name, overloads]) => [name, overloads.map(overloadOf)] as const),
  ])
  return declared
}

export function definitionOf(name: string): FunctionDefinition | undefined {
  return definitions.get(name)
}
