/** The APIServices as every controller sees them now, and which of them stand for another server. */
import { isApiError } from '../../../api/api-error.ts'
import { registrationName } from '../../../api/registration/api-service.ts'
import type { GroupVersion } from '../../../api/registration/group-order.ts'
import { type Loop, startLoops } from '../../../daemon/run.ts'
import { type InformerNeeds, informer } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import { isOwnGroup } from '../kinds/registration/own-groups.ts'

export type StoredApiService = StoredObject<'apiservices'>

export interface ApiServices {
  all(): Iterable<StoredApiService>
  /** Those of extension servers. */
  remotes(): readonly StoredApiService[]
  /** undefined: the fleet serves this version by itself, or nothing does. */
  remoteAt(one: GroupVersion): StoredApiService | undefined
  /** Called after each change. Returns how to stop that. */
  onChange(listener: (name: string) => void): () => void
}

/** The Service that answers for it; undefined: the fleet itself. */
export function isOfExtension({ spec: { service, group = '' } }: Pick<StoredApiService, 'spec'>): boolean {
  // Refused when it is written, and also where a store has it otherwise.
  return service !== undefined && !isOwnGroup(group)
}

/** The loop keeps them; those of now are there when the promise resolves. */
export async function followApiServices(needs: InformerNeeds): Promise<{ apiServices: ApiServices; loop: Loop }> {
  const listeners = new Set<(name: string) => void>()
  const remotes = new Map<string, StoredApiService>()
  const found = informer(needs, 'apiservices', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    if (present !== undefined && isOfExtension(present)) remotes.set(name, present)
    else remotes.delete(name)
    for (const listener of listeners) listener(name)
  })
  const { running, run } = startLoops([{ name: 'api-services', run: found.run }], needs.log)
  await Promise.race([found.listed, running])
  const latest = () => {
    try {
      found.catchUp()
    } catch (error) {
      // It lists again, and has what it had until then.
      if (!isApiError(error, 'Expired')) throw error
    }
  }
  const apiServices: ApiServices = {
    all() {
      latest()
      return found.all()
    },
    remotes() {
      latest()
      return [...remotes.values()]
    },
    remoteAt(one) {
      latest()
      return remotes.get(registrationName(one))
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return { apiServices, loop: { name: 'api-services', run } }
}
