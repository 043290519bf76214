/** A person who applies, changes and deletes workloads, and repeats each request until it is answered. */
import { administrator } from '../../api/identity.ts'
import type { ApiAnswer } from '../../daemon/api-client.ts'
import { type ApiServers, simulatedApi } from '../programs/api-transport.ts'
import type { Story } from '../story/story.ts'
import type { RandomSource } from '../world/random-source.ts'
import type { ProgramPlace } from '../world/wire.ts'
import { deployment, job, statefulSet, type Workload } from './workloads.ts'

export interface User {
  /** Applies the first workloads. */
  begin(): Promise<void>
  /** One change of what is there. */
  act(): Promise<void>
  /** What the user wants to be there, by the answers so far. */
  readonly wanted: ReadonlyMap<string, Workload>
}

export type UserNeeds = {
  readonly place: ProgramPlace
  readonly api: ApiServers
  readonly random: RandomSource
  readonly story: Story
}

type Body = { readonly metadata?: { readonly uid?: string; readonly resourceVersion?: string } }

export function simulatedUser({ place, api: servers, random, story }: UserNeeds): User {
  const api = simulatedApi(place, servers, administrator)
  const { clock } = place.life
  const wanted = new Map<string, Workload>()
  let serial = 0

  /** Until there is an answer that is not the server's failure. */
  const answered = async (what: string, ask: () => Promise<ApiAnswer>): Promise<ApiAnswer> => {
    story.note('user', what)
    for (;;) {
      try {
        const answer = await ask()
        if (answer.status < 500 && answer.status !== 429) return answer
      } catch {
        // Whether it was done is not known: it is asked for again.
      }
      await clock.sleep(2_000)
    }
  }
  const written = ({ resource, name }: Pick<Workload, 'resource' | 'name'>, { status, body }: ApiAnswer) => {
    const { uid = '', resourceVersion } = (body as Body).metadata ?? {}
    if (status >= 300 || resourceVersion === undefined)
      return story.note('user', `answer ${status} for ${resource} ${name}`)
    story.record({ kind: 'answered', resource, namespace: 'default', name, uid, version: Number(resourceVersion) })
  }
  const apply = async (workload: Workload) => {
    wanted.set(`${workload.resource}/${workload.name}`, workload)
    written(
      workload,
      await answered(`create ${workload.resource} ${workload.name}`, () => api.post(workload.path, workload.manifest)),
    )
  }
  const change = async (workload: Workload, what: string, spec: { readonly [field: string]: unknown }) => {
    const { manifest } = workload
    const next = { ...workload, manifest: { ...manifest, spec: { ...manifest.spec, ...spec } } }
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
    const options = { propagationPolicy: 'Background' }
    await answered(`delete ${workload.resource} ${workload.name}`, () =>
      api.delete(`${workload.path}/${workload.name}`, undefined, options),
    )
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
  }
}
