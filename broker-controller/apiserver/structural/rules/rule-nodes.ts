/** The rules of a schema as a tree of what has some: compiled when an object is first judged by them, and kept while they are in use. */
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { schemaOfItems } from '../pruning.ts'
import { type CompiledRule, compiledRule, hasRules } from './compiled-rules.ts'
import { type Declared, declaredType } from './declared-type.ts'

export type RuleNode = {
  readonly declared: Declared
  readonly rules: readonly CompiledRule[]
  readonly properties: ReadonlyMap<string, RuleNode>
  /** Of the items of a list, or the values of a map. */
  readonly element: RuleNode | undefined
}

type Kept = { readonly node: RuleNode | undefined; readonly characters: number }

/** By schema, those that were used last at the end. */
const kept = new Map<JSONSchemaProps, Kept>()
/** Of all expressions that are kept compiled: about 10 MB. */
const mostCharacters = 100_000
let characters = 0

/** undefined: the schema of a whole object has no rules. */
export function ruleNodesOf(schema: JSONSchemaProps): RuleNode | undefined {
  const known = kept.get(schema)
  const made = known ?? compiledSchema(schema)
  kept.delete(schema)
  kept.set(schema, made)
  if (known === undefined) characters += made.characters
  for (const [one, { characters: size }] of kept) {
    if (characters <= mostCharacters || one === schema) break
    kept.delete(one)
    characters -= size
  }
  return made.node
}

function compiledSchema(schema: JSONSchemaProps): Kept {
  if (!hasRules(schema)) return { node: undefined, characters: 1 }
  const node = ruleNodeOf(schema, undefined, true)
  return { node, characters: node === undefined ? 1 : charactersIn(node) }
}

function charactersIn({ rules, properties, element }: RuleNode): number {
  const own = rules.reduce((sum, { rule }) => sum + rule.rule.length + (rule.messageExpression?.length ?? 0), 0)
  const inner = [...properties.values(), ...(element === undefined ? [] : [element])]
  return inner.reduce((sum, one) => sum + charactersIn(one), own)
}

/** undefined: there are no rules, or they are of a schema that they cannot see. `known`: the declared type of the schema. */
export function ruleNodeOf(
  schema: JSONSchemaProps,
  known: Declared | undefined,
  isResource: boolean,
): RuleNode | undefined {
  if (!hasRules(schema)) return undefined
  const declared = known ?? declaredType(schema, isResource)
  if (declared === undefined) return undefined
  const isEmbedded = (one: JSONSchemaProps) => one['x-kubernetes-embedded-resource'] === true
  const properties = new Map<string, RuleNode>()
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const node = ruleNodeOf(one, declared.fields?.get(name), isEmbedded(one))
    if (node !== undefined) properties.set(name, node)
  }
  const { additionalProperties } = schema
  const inner = schemaOfItems(schema) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  return {
    declared,
    rules: (schema['x-kubernetes-validations'] ?? []).map((rule) => compiledRule(rule, declared)),
    properties,
    element: inner && ruleNodeOf(inner, declared.element, isEmbedded(inner)),
  }
}
