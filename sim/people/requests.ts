/** Requests of a person, who repeats each one until it is answered; the answers are facts. */
import { administrator } from '../../api/identity.ts'
import type { ApiAnswer, ApiClient } from '../../daemon/api-client.ts'
import { type ApiServers, simulatedApi } from '../programs/api-transport.ts'
import type { Story } from '../story/story.ts'
import type { ProgramPlace } from '../world/wire.ts'

export type PersonNeeds = { readonly place: ProgramPlace; readonly api: ApiServers; readonly story: Story }

/** `path`: of the list of its kind. */
export type RequestTarget = { readonly resource: string; readonly path: string; readonly name: string }

export interface Requests {
  readonly api: ApiClient
  /** Until there is an answer that is not the server's failure. */
  answered(what: string, ask: () => Promise<ApiAnswer>): Promise<ApiAnswer>
  /** Records that this write was answered. */
  written(target: Pick<RequestTarget, 'resource' | 'name'>, answer: ApiAnswer): void
  /** Creates the object; one that is there is left as it is. */
  create(target: RequestTarget, manifest: unknown): Promise<void>
  /** Deletes it in the background. */
  remove(target: RequestTarget): Promise<void>
  /** Reads it, and records what was read. */
  read(target: RequestTarget): Promise<void>
}

type Body = {
  readonly metadata?: {
    readonly uid?: string
    readonly resourceVersion?: string
    readonly deletionTimestamp?: string
  }
}

const namespace = 'default'

export function personalRequests({ place, api: servers, story }: PersonNeeds): Requests {
  const api = simulatedApi(place, servers, administrator)
  const who = place.machine
  const answered: Requests['answered'] = async (what, ask) => {
    story.note(who, what)
    for (;;) {
      try {
        const answer = await ask()
        if (answer.status < 500 && answer.status !== 429) return answer
      } catch {
        // Whether it was done is not known: it is asked for again.
      }
      await place.life.clock.sleep(2_000)
    }
  }
  const written: Requests['written'] = ({ resource, name }, { status, body }) => {
    const { uid = '', resourceVersion } = (body as Body).metadata ?? {}
    if (status >= 300 || resourceVersion === undefined)
      return story.note(who, `answer ${status} for ${resource} ${name}`)
    story.record({ kind: 'answered', resource, namespace, name, uid, version: Number(resourceVersion) })
  }
  return {
    ...{ api, answered, written },
    async create(target, manifest) {
      const what = `create ${target.resource} ${target.name}`
      written(target, await answered(what, () => api.post(target.path, manifest)))
    },
    async remove({ resource, path, name }) {
      const options = { propagationPolicy: 'Background' }
      const { status } = await answered(`delete ${resource} ${name}`, () =>
        api.delete(`${path}/${name}`, undefined, options),
      )
      if (status < 300 || status === 404) story.record({ kind: 'removed', resource, namespace, name })
    },
    async read({ resource, path, name }) {
      const { status, body } = await answered(`read ${resource} ${name}`, () => api.get(`${path}/${name}`))
      if (status !== 200 && status !== 404) return story.note(who, `answer ${status} for ${resource} ${name}`)
      const { resourceVersion, deletionTimestamp } = status === 404 ? {} : ((body as Body).metadata ?? {})
      const isThere = resourceVersion !== undefined && deletionTimestamp === undefined
      story.record({
        ...{ kind: 'read', resource, namespace, name },
        version: isThere ? Number(resourceVersion) : undefined,
      })
    },
  }
}
