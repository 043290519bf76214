/** Objects that the controllers of this process create, admitted as those of a client. */
import { serviceAccountGroups, serviceAccountUser } from '../../../api/access/service-account-names.ts'
import { authenticatedGroup, type Identity } from '../../../api/identity.ts'
import type { BuiltInName, BuiltInTypes } from '../../../api/resources.ts'
import type { StoredObject } from '../../store/store.ts'
import { makeObject } from './creating.ts'
import type { KindRegistry, ResourceNeeds, ResourceRequest } from './strategy.ts'

export interface ControllerCreation {
  /** Throws the ApiError of a refusal. `controller`: its service account in kube-system. */
  create<R extends BuiltInName>(resource: R, object: BuiltInTypes[R], controller: string): Promise<StoredObject<R>>
}

/** Webhooks and quotas see each controller as the account that Kubernetes runs it as. What it creates has no field manager. */
export function controllerCreation(needs: ResourceNeeds, kinds: KindRegistry): ControllerCreation {
  return {
    async create<R extends BuiltInName>(resource: R, object: BuiltInTypes[R], controller: string) {
      const kind = kinds.get(resource)
      if (kind === undefined) throw new TypeError(`No such resource: ${resource}`)
      const { namespace = '', name = '' } = object.metadata
      const request: ResourceRequest = {
        route: { kind: 'resource', verb: 'create', resource: kind, namespace, name, subresource: '' },
        identity: controllerIdentity(controller),
        query: new URLSearchParams(),
        accept: undefined,
        contentType: undefined,
        readBody: async () => Buffer.alloc(0),
        signal: new AbortController().signal,
      }
      const made = await makeObject(request, needs, object, () => ({ managedFields: () => [] }))
      // It was stored as an object of this resource.
      return made.object as StoredObject<R>
    },
  }
}

const controllersNamespace = 'kube-system'

/** The service account that Kubernetes runs this controller as. */
export function controllerIdentity(controller: string): Identity {
  return {
    user: serviceAccountUser(controllersNamespace, controller),
    groups: [...serviceAccountGroups(controllersNamespace), authenticatedGroup],
  }
}
