/** Requests with the largest objects that the limits allow: of each list and map of each kind, with each verb. */
import type { BudgetCase } from '../../../daemon/testing/turn-budget.ts'
import type { KindStrategy } from '../../apiserver/handlers/strategy.ts'
import { mostValues } from '../../apiserver/wire/body-limits.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { type LargeObject, largeObjects } from '../largest-objects.ts'
import { acceptedWords } from './accepted-words.ts'
import { budgetedApi, mostBodyBytes, type SendRequest } from './budgeted-api.ts'
import { type HandmadeObject, handmadeObjects } from './handmade-objects.ts'

export type ObjectCaseOptions = {
  /** In a body. */
  readonly values?: number
  /** A part of the names of the cases. */
  readonly only?: string
  /** undefined: every one. */
  readonly isWanted?: (kind: KindStrategy, field: string) => boolean
  /** undefined: every verb. */
  readonly verbs?: readonly string[]
}

/** Cases of the lists and maps that schemas describe. */
export async function* schemaCases(options: ObjectCaseOptions = {}): AsyncGenerator<BudgetCase> {
  const { isWanted = () => true, only = '' } = options
  for (const kind of builtInKinds.all) {
    const isOf = (field: string) =>
      // Init and ephemeral containers have the fields of containers.
      `${kind.name} ${field}`.includes(only) && !/(init|ephemeral)Containers\[\]/.test(field) && isWanted(kind, field)
    const words = acceptedWords(kind, isOf)
    for (const large of largeObjects(kind, words)) {
      if (!isOf(large.field)) continue
      for await (const one of casesOf(kind, large, options)) if (hasVerb(one, options)) yield one
    }
  }
}

/** Cases of the objects made by hand. */
export async function* handmadeCases(options: ObjectCaseOptions = {}): AsyncGenerator<BudgetCase> {
  for (const made of handmadeObjects()) {
    if (!made.what.includes(options.only ?? '')) continue
    for await (const one of casesOfHandmade(made)) if (hasVerb(one, options)) yield one
  }
}

function hasVerb({ what }: BudgetCase, { verbs }: ObjectCaseOptions): boolean {
  return verbs === undefined || verbs.some((verb) => what.endsWith(` ${verb}`))
}

async function* casesOf(
  kind: KindStrategy,
  { field, object }: LargeObject,
  { values = mostValues }: ObjectCaseOptions,
) {
  const { send } = await budgetedApi()
  const items = mostItems(object, values)
  const [small, first, second] = [object(1, 'a'), object(items, 'a'), object(items, 'b')].map((one) =>
    JSON.stringify(one),
  )
  const place = { send, base: pathOf(kind), name: 'large' }
  yield* writesOf(`${kind.name} ${field}`, place, {
    ...{ small: small ?? '', first: first ?? '', second: second ?? '' },
    hasStatus: 'status' in kind.subresources,
  })
}

async function* casesOfHandmade({ what, path, name, before = [], object }: HandmadeObject) {
  const { send } = await budgetedApi()
  for (const { path: at, body } of before) {
    const code = await send({ method: 'POST', path: at, body: JSON.stringify(body) })
    if (code !== 201) throw new Error(`${what}: what must be there was not created: ${code}`)
  }
  const [first, second] = [object('a'), object('b')].map((one) => JSON.stringify(one))
  const texts = { small: undefined, first: first ?? '', second: second ?? '', hasStatus: false }
  yield* writesOf(what, { send, base: path, name }, texts)
}

type Place = { readonly send: SendRequest; readonly base: string; readonly name: string }
type Bodies = {
  /** undefined: nothing smaller is replaced. */
  readonly small: string | undefined
  readonly first: string
  readonly second: string
  readonly hasStatus: boolean
}

/** Writes of an object. For one that is rejected only the POST: there would be nothing to change. */
async function* writesOf(what: string, { send, base, name }: Place, bodies: Bodies): AsyncGenerator<BudgetCase> {
  const { small, first, second, hasStatus } = bodies
  const path = `${base}/${name}`
  const remove = () => send({ method: 'DELETE', path, body: '{"gracePeriodSeconds":0}' })
  const create = (body: string) => send({ method: 'POST', path: base, body })
  const change = (method: string, body: string, type = 'json', at = path) => send({ method, path: at, body, type })
  const fresh = (body: string) => async () => {
    await remove()
    await create(body)
  }
  const [bytes, after] = [first.length, second.length]
  yield { what: `${what} POST`, bytes, prepare: remove, act: () => create(first) }
  if (small === undefined && (await send({ method: 'GET', path })) !== 200) return
  if (small !== undefined) yield { what: `${what} PUT`, bytes, prepare: fresh(small), act: () => change('PUT', first) }
  const over = async () => {
    await fresh(small ?? first)()
    if (small !== undefined) await change('PUT', first)
  }
  yield { what: `${what} PUT over large`, bytes: after, prepare: over, act: () => change('PUT', second) }
  const patch = (type: string) => () => change('PATCH', second, `${type}+json`)
  yield { what: `${what} merge`, bytes: after, prepare: over, act: patch('merge-patch') }
  yield { what: `${what} strategic`, bytes: after, prepare: over, act: patch('strategic-merge-patch') }
  const apply = () => change('PATCH', second, 'apply-patch+yaml', `${path}?fieldManager=budget&force=true`)
  yield { what: `${what} apply`, bytes: after, prepare: over, act: apply }
  if (!hasStatus) return
  const status = () => change('PUT', second, 'json', `${path}/status`)
  yield { what: `${what} PUT status`, bytes: after, act: status }
}

/** As many as the limits of values and bytes allow. */
export function mostItems(object: LargeObject['object'], values: number): number {
  const hundred = JSON.stringify(object(100, 'a'))
  const ofValues = Math.floor((values * 100) / (hundred.match(/[,[{]/g) ?? []).length) - 50
  return Math.max(1, Math.min(ofValues, Math.floor((mostBodyBytes * 95) / hundred.length) - 10))
}

/** Where objects of this kind are in the namespace default. */
export function pathOf({ group, version, name, namespaced }: KindStrategy): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespaced ? `${root}/namespaces/default/${name}` : `${root}/${name}`
}
