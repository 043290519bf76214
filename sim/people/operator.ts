/** A person whose workloads have Secrets and a disruption budget: evicts pods, and reads again what was answered. */
import type { RandomSource } from '../world/random-source.ts'
import { type PersonNeeds, personalRequests, type RequestTarget } from './requests.ts'
import { secretManifest } from './secrets.ts'
import type { User } from './user.ts'
import { pairJob, type Workload, withSecret } from './workloads.ts'

export type OperatorNeeds = PersonNeeds & { readonly random: RandomSource }

/** The pods that the budget guards. */
export const guardedPods = { app: 'shop', minAvailable: 2 }

const core = '/api/v1/namespaces/default'
const secretNames = ['key-1', 'key-2', 'key-3', 'key-4']
const secretTarget = (name: string): RequestTarget => ({ resource: 'secrets', path: `${core}/secrets`, name })
const budgetTarget: RequestTarget = {
  ...{ resource: 'poddisruptionbudgets', name: guardedPods.app },
  path: '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
}
const budget = {
  ...{
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: guardedPods.app, namespace: 'default' },
  },
  spec: { minAvailable: guardedPods.minAvailable, selector: { matchLabels: { app: guardedPods.app } } },
}

export function simulatedOperator({ random, ...needs }: OperatorNeeds): User {
  const { api, answered, create, remove, read } = personalRequests(needs)
  const { story, place } = needs
  const wanted = new Map<string, Workload>()
  const targets = new Map<string, RequestTarget>()
  let serial = 0

  const make = async (target: RequestTarget, manifest: unknown) => {
    targets.set(`${target.resource}/${target.name}`, target)
    await create(target, manifest)
  }
  const apply = async (workload: Workload) => {
    wanted.set(`${workload.resource}/${workload.name}`, workload)
    await make(workload, workload.manifest)
  }
  const till = () => withSecret(`till-${++serial}`, random.between(1, 2), random.pick(secretNames.slice(0, 3)))
  /** Asked for once: the answer may be that the budget does not allow it. */
  const evict = async (name: string) => {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } }
    const answer = await api.post(`${core}/pods/${name}/eviction`, body).catch(() => undefined)
    story.note(place.machine, `evict pod ${name}: ${answer?.status ?? 'no answer'}`)
  }
  const evictSome = async () => {
    const selector = `labelSelector=app%3D${guardedPods.app}`
    const { body } = await answered('list the guarded pods', () => api.get(`${core}/pods?${selector}`))
    const { items } = body as { readonly items: readonly { readonly metadata: { readonly name: string } }[] }
    // Two at once: the budget allows one.
    const first = items.length > 0 ? random.between(0, items.length - 1) : 0
    await Promise.all(items.slice(first, first + 2).map(({ metadata }) => evict(metadata.name)))
  }
  const actions: readonly (() => Promise<void>)[] = [
    evictSome,
    evictSome,
    () => read(random.pick([...targets.values()])),
    () => read(random.pick([...targets.values()])),
    async () => {
      const old = random.pick([...wanted.values()].filter(({ name }) => name.startsWith('till')))
      wanted.delete(`${old.resource}/${old.name}`)
      await remove(old)
      await apply(till())
    },
  ]

  return {
    wanted,
    async begin() {
      for (const name of secretNames) await make(secretTarget(name), secretManifest(name))
      await make(budgetTarget, budget)
      await apply(withSecret(guardedPods.app, 3, 'key-1'))
      await apply(till())
      await apply(pairJob('sums-pair', 6, 400))
    },
    act: () => random.pick(actions)(),
  }
}
