/** The rules of a schema as a tree of what has some. Each is compiled when it first judges an object, and kept while the schema is in use. */
import type { JSONSchemaProps, ValidationRule } from '../../../../api/structural/json-schema-props.ts'
import { schemaOfItems } from '../pruning.ts'
import { type CompiledRule, compiledRule, hasRules } from './compiled-rules.ts'
import { type Declared, declaredType } from './declared-type.ts'

export class LazyRule {
  readonly rule: ValidationRule
  readonly #declared: Declared
  #compiled: CompiledRule | undefined

  constructor(rule: ValidationRule, declared: Declared) {
    this.rule = rule
    this.#declared = declared
  }

  get isCompiled(): boolean {
    return this.#compiled !== undefined
  }

  compiled(): CompiledRule {
    this.#compiled ??= compiledRule(this.rule, this.#declared)
    return this.#compiled
  }
}

export type RuleNode = {
  readonly declared: Declared
  readonly rules: readonly LazyRule[]
  readonly properties: ReadonlyMap<string, RuleNode>
  /** Rules for the items of a list, or the values of a map. */
  readonly element: RuleNode | undefined
}

/** By schema: what a definition no longer has is not kept. */
const nodes = new WeakMap<JSONSchemaProps, RuleNode>()
/** Those of `nodes`, the oldest first. */
const sizes: { readonly schema: WeakRef<JSONSchemaProps>; readonly characters: number }[] = []
/** Characters of all expressions that are kept compiled, which take about 10 MB. */
const mostCharacters = 100_000
const leastCharacters = 100
let characters = 0

/** undefined: the schema, which is that of a whole object, has no rules. */
export function ruleNodesOf(schema: JSONSchemaProps): RuleNode | undefined {
  const known = nodes.get(schema)
  if (known !== undefined || !hasRules(schema)) return known
  const made = ruleNodeOf(schema, undefined, true)
  if (made === undefined) return undefined
  nodes.set(schema, made)
  const size = Math.max(leastCharacters, charactersIn(made))
  sizes.push({ schema: new WeakRef(schema), characters: size })
  characters += size
  while (characters > mostCharacters && sizes.length > 1) {
    const oldest = sizes.shift()
    characters -= oldest?.characters ?? 0
    const gone = oldest?.schema.deref()
    if (gone !== undefined) nodes.delete(gone)
  }
  return made
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
    rules: (schema['x-kubernetes-validations'] ?? []).map((rule) => new LazyRule(rule, declared)),
    properties,
    element: inner && ruleNodeOf(inner, declared.element, isEmbedded(inner)),
  }
}
