/** What the autoscaler needs of the workloads that it scales: their subresource `scale`. */
import type { CrossVersionObjectReference } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Scale } from '../../../api/workloads/scale.ts'

export type TargetScale = { readonly resource: ResourceName; readonly scale: Scale }

export interface Scales {
  /** Scale of an object of any kind that has one. Rejects with Kubernetes' message if there is none. */
  get(namespace: string, target: CrossVersionObjectReference): Promise<TargetScale>
  /**
   * Writes `spec.replicas` as the API does for this controller: with validation, webhooks and the owners of fields. Throws the
   * ApiError of a refusal; Conflict where the workload is not the version that was read.
   */
  update(target: TargetScale, replicas: number, controller: string): Promise<void>
}
