/** From the rules that the kernel has to those that are wanted: a transaction of nft, which the kernel applies as a whole or not at all. */
import { jumpPoints } from './base-rules.ts'
import type { RuleFamily } from './rule-family.ts'
import { type BaseHook, noRules, type RuleChain, type RuleElements, type RuleSet, tableName } from './rule-set.ts'

/** What the kernel has, by name. */
export type ExistingRules = {
  readonly chains: readonly string[]
  readonly sets: readonly ExistingSet[]
}
export type ExistingSet = Pick<RuleElements, 'kind' | 'type' | 'timeoutSeconds'> & { readonly name: string }

export type RuleChange = { readonly before: RuleSet; readonly after: RuleSet }

export type RuleTransaction = {
  /** '' where nothing changes. */
  readonly commands: string
  /**
   * Chains that are empty and unused behind it, to be deleted by `chainDeletion` a second later at the earliest: before Linux 6.2
   * a chain counts as used for some moments after the element of a map that led to it was deleted (kube-proxy, pkg/proxy/nftables,
   * staleChains).
   */
  readonly retired: readonly string[]
}

/**
 * The commands of a transaction, by the order that references demand: a chain or set can be deleted when no rule and no
 * element refers to it, and used once it was added.
 */
type Phases = {
  readonly command: Command
  readonly flush: string[]
  readonly deleteElements: string[]
  readonly deleteSets: string[]
  readonly deleteChains: string[]
  readonly define: string[]
  readonly fill: string[]
  readonly retired: string[]
}

/** One transaction for the changes of all parts. It costs what changed, not what there is. `family`: of the table. */
export function ruleChanges(changes: readonly RuleChange[], family: RuleFamily): RuleTransaction {
  const phases = noPhases(family)
  for (const { before, after } of changes) {
    if (before === after) continue
    changeSets(phases, before.sets, after.sets)
    changeChains(phases, before.chains, after.chains)
  }
  return transaction(phases)
}

/** Deletes chains that are empty, and that no rule and no element leads to. */
export function chainDeletion(retired: readonly string[], family: RuleFamily): string {
  const command = commandOf(family)
  return retired.map((name) => `${command('delete', 'chain', name)}\n`).join('')
}

/**
 * The same from an unknown state, such as that of an earlier agent: everything is put in place again, but what packets filled
 * is kept.
 */
export function allRules(
  existing: ExistingRules | undefined,
  wanted: readonly RuleSet[],
  family: RuleFamily,
): RuleTransaction {
  const phases = noPhases(family)
  const { command } = phases
  const chains = new Map(wanted.flatMap((part) => [...part.chains]))
  const sets = new Map(wanted.flatMap((part) => [...part.sets]))
  if (existing !== undefined) phases.flush.push(`flush table ${family.ip} ${tableName}`)
  const known = keptSets(phases, existing?.sets ?? [], sets)
  for (const name of existing?.chains ?? []) {
    // A chain that the kernel enters may have been at another place.
    if (chains.get(name)?.base !== undefined) phases.deleteChains.push(command('delete', 'chain', name))
    else if (!chains.has(name) && !jumpPoints.has(name)) phases.retired.push(name)
  }
  for (const name of jumpPoints) phases.define.push(command('add', 'chain', name))
  changeSets(phases, known, sets)
  changeChains(phases, noRules.chains, chains)
  const { commands, retired } = transaction(phases)
  return { commands: `add table ${family.ip} ${tableName}\n${commands}`, retired }
}

/** Those that stay, emptied unless packets fill them; deletes the others. */
function keptSets(phases: Phases, existing: readonly ExistingSet[], wanted: RuleSet['sets']): RuleSet['sets'] {
  const { command } = phases
  const kept = new Map<string, RuleElements>()
  for (const set of existing) {
    const next = wanted.get(set.name)
    if (next === undefined || !isKept(set, next)) {
      phases.deleteSets.push(command('delete', set.kind, set.name))
      continue
    }
    kept.set(set.name, next.elements === undefined ? next : { ...next, elements: undefined })
    if (next.elements !== undefined) phases.flush.push(command('flush', set.kind, set.name))
  }
  return kept
}

/** Flags and size are not listed: a set with some that is not filled by packets is made again. */
function isKept(existing: ExistingSet, wanted: RuleElements): boolean {
  return (
    existing.kind === wanted.kind &&
    existing.type === wanted.type &&
    existing.timeoutSeconds === wanted.timeoutSeconds &&
    (wanted.elements === undefined || (wanted.flags === undefined && wanted.size === undefined))
  )
}

function changeChains(phases: Phases, before: RuleSet['chains'], after: RuleSet['chains']): void {
  const { command } = phases
  for (const [name, { base }] of before) {
    const next = after.get(name)
    if (next !== undefined && isSameHook(base, next.base)) continue
    phases.flush.push(command('flush', 'chain', name))
    if (next !== undefined) phases.deleteChains.push(command('delete', 'chain', name))
    else if (!jumpPoints.has(name)) phases.retired.push(name)
  }
  for (const [name, chain] of after) if (before.get(name) !== chain) changeChain(phases, name, before.get(name), chain)
}

function changeChain(
  { command, define, flush, fill }: Phases,
  name: string,
  before: RuleChain | undefined,
  after: RuleChain,
) {
  const isNew = before === undefined || !isSameHook(before.base, after.base)
  if (!isNew && isSameRules(before, after)) return
  if (isNew) define.push(`${command('add', 'chain', name)}${hookText(after.base)}`)
  else flush.push(command('flush', 'chain', name))
  for (const rule of after.rules) fill.push(`${command('add', 'rule', name)} ${rule}`)
}

function changeSets(phases: Phases, before: RuleSet['sets'], after: RuleSet['sets']): void {
  const { command } = phases
  for (const [name, set] of before) {
    const next = after.get(name)
    if (next !== undefined && definition(next) === definition(set)) continue
    phases.deleteSets.push(command('delete', set.kind, name))
  }
  for (const [name, set] of after) {
    const last = before.get(name)
    if (last === set) continue
    const isNew = last === undefined || definition(last) !== definition(set)
    if (isNew) phases.define.push(`${command('add', set.kind, name)} ${definition(set)}`)
    const had = (isNew ? undefined : last.elements) ?? noElements
    const wants = set.elements ?? noElements
    const differing = (one: Elements, other: Elements) => [...one].filter(([key, value]) => other.get(key) !== value)
    push(phases.deleteElements, command('delete', 'element', name), differing(had, wants))
    push(phases.fill, command('add', 'element', name), differing(wants, had))
  }
}

type Elements = ReadonlyMap<string, string>
const noElements: Elements = new Map()

function push(lines: string[], command: string, elements: readonly (readonly [string, string])[]): void {
  if (elements.length === 0) return
  const texts = elements.map(([key, value]) => (value === '' ? key : `${key} : ${value}`))
  lines.push(`${command} { ${texts.join(', ')} }`)
}

function definition({ type, flags = [], timeoutSeconds, size }: RuleElements): string {
  const parts = [
    `type ${type}`,
    ...(flags.length > 0 ? [`flags ${flags.join(',')}`] : []),
    ...(timeoutSeconds === undefined ? [] : [`timeout ${timeoutSeconds}s`]),
    ...(size === undefined ? [] : [`size ${size}`]),
  ]
  return `{ ${parts.join(' ; ')} ; }`
}

function hookText(base: BaseHook | undefined): string {
  return base === undefined ? '' : ` { type ${base.type} hook ${base.hook} priority ${base.priority} ; }`
}

function isSameHook(one: BaseHook | undefined, other: BaseHook | undefined): boolean {
  return one === other || hookText(one) === hookText(other)
}

function isSameRules({ rules: one }: RuleChain, { rules: other }: RuleChain): boolean {
  return one === other || (one.length === other.length && one.every((rule, index) => rule === other[index]))
}

type Command = (verb: 'add' | 'delete' | 'flush', what: string, name: string) => string

function commandOf({ ip }: RuleFamily): Command {
  return (verb, what, name) => `${verb} ${what} ${ip} ${tableName} ${name}`
}

function noPhases(family: RuleFamily): Phases {
  const command = commandOf(family)
  return { command, flush: [], deleteElements: [], deleteSets: [], deleteChains: [], define: [], fill: [], retired: [] }
}

function transaction({ retired, ...phases }: Phases): RuleTransaction {
  const { flush, deleteElements, deleteSets, deleteChains, define, fill } = phases
  const commands = [flush, deleteElements, deleteSets, deleteChains, define, fill]
    .flatMap((lines) => lines.map((line) => `${line}\n`))
    .join('')
  return { commands, retired }
}
