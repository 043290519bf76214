/** A person who applies, changes and deletes workloads, and repeats each request until it is answered. */
import { isObject } from '../../api/text/json.ts'
import type { RandomSource } from '../world/random-source.ts'
import { type PersonNeeds, personalRequests } from './requests.ts'
import { deployment, job, statefulSet, type Workload } from './workloads.ts'

export interface User {
  /** Applies the first workloads. */
  begin(): Promise<void>
  /** One change of what is there. */
  act(): Promise<void>
  /** All changes again, for a store that a backup has replaced. */
  repeat?(): Promise<void>
  /** What the user wants to be there, by the answers so far. */
  readonly wanted: ReadonlyMap<string, Workload>
}

export type UserNeeds = PersonNeeds & { readonly random: RandomSource }

export function simulatedUser({ random, ...needs }: UserNeeds): User {
  const { api, answered, written, create, remove: removeObject } = personalRequests(needs)
  const wanted = new Map<string, Workload>()
  const removed = new Map<string, Workload>()
  let serial = 0

  const apply = async (workload: Workload) => {
    wanted.set(`${workload.resource}/${workload.name}`, workload)
    await create(workload, workload.manifest)
  }
  const change = async (workload: Workload, what: string, spec: { readonly [field: string]: unknown }) => {
    const { manifest } = workload
    const next = { ...workload, manifest: { ...manifest, spec: merged(manifest.spec, spec) } }
    wanted.set(`${workload.resource}/${workload.name}`, next)
    written(
      workload,
      await answered(`${what} of ${workload.resource} ${workload.name}`, () =>
        api.patch(`${workload.path}/${workload.name}`, { spec }),
      ),
    )
  }
  const remove = async (workload: Workload) => {
    wanted.delete(`${workload.resource}/${workload.name}`)
    removed.set(`${workload.resource}/${workload.name}`, workload)
    await removeObject(workload)
  }
  /** As `kubectl apply`: created, or changed to its manifest. */
  const applyAgain = async ({ resource, path, name, manifest }: Workload) => {
    const made = await answered(`apply ${resource} ${name} again`, () => api.post(path, manifest))
    if (made.status !== 409) return written({ resource, name }, made)
    if (resource === 'jobs') return
    const { replicas, template } = manifest.spec
    const change = () => api.patch(`${path}/${name}`, { spec: { replicas, template } })
    written({ resource, name }, await answered(`change ${resource} ${name} again`, change))
  }

  const some = (resource: string) => random.pick([...wanted.values()].filter((one) => one.resource === resource))
  const actions: readonly (() => Promise<void>)[] = [
    () => {
      const replicas = random.between(0, 5)
      return change(some('deployments'), `replicas ${replicas}`, { replicas })
    },
    () => {
      const replicas = random.between(0, 3)
      return change(some('statefulsets'), `replicas ${replicas}`, { replicas })
    },
    () => {
      const revision = String(++serial)
      const template = { metadata: { annotations: { revision } } }
      return change(some(random.pick(['deployments', 'statefulsets'])), `revision ${revision}`, { template })
    },
    () => apply(job(`sums-${++serial}`, random.between(1, 3), random.between(5, 120))),
    async () => {
      const { items } = (await answered('list pods', () => api.get('/api/v1/namespaces/default/pods'))).body as {
        readonly items: readonly { readonly metadata: { readonly name: string } }[]
      }
      if (items.length === 0) return
      const { name } = random.pick(items).metadata
      await answered(`delete pod ${name}`, () => api.delete(`/api/v1/namespaces/default/pods/${name}`))
    },
    async () => {
      const old = some('deployments')
      await remove(old)
      await apply(deployment(`web-${++serial}`, random.between(1, 4)))
    },
  ]

  return {
    wanted,
    async begin() {
      await apply(deployment('web', 3))
      await apply(statefulSet('db', 2))
      await apply(job('sums', 3, 20))
    },
    act: () => random.pick(actions)(),
    async repeat() {
      for (const workload of [...wanted.values()]) await applyAgain(workload)
      for (const workload of [...removed.values()]) await removeObject(workload)
    },
  }
}

type Fields = { readonly [field: string]: unknown }

/** As a merge patch without nulls. */
function merged(target: Fields, patch: Fields): Fields {
  const fields = Object.entries(patch).map(([name, value]) => {
    const before = target[name]
    return [name, isObject(value) && isObject(before) ? merged(before, value) : value]
  })
  return { ...target, ...Object.fromEntries(fields) }
}
