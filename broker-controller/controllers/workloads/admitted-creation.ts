/** What the controllers of workloads need to create objects: the API's admission, without its network. */
import type { BuiltInName, BuiltInTypes } from '../../../api/resources.ts'
import type { StoredObject } from '../../store/store.ts'

export interface AdmittedCreation {
  /**
   * Creates the object as the API creates it for this controller: with defaults, validation, webhooks, quotas and limits of its
   * namespace. `metadata.generateName` becomes a name. `controller`: its service account in kube-system, as
   * `replicaset-controller`. Throws the ApiError of a refusal.
   */
  create<R extends BuiltInName>(resource: R, object: BuiltInTypes[R], controller: string): Promise<StoredObject<R>>
}
