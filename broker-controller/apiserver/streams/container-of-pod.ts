/** Chooses the container of a stream (validateContainer and streamLocation in pkg/registry/core/pod/strategy.go). */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import { presentObject } from '../handlers/resource-request.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'

/** The pod that the path names. Throws NotFound. */
export async function presentPod(request: ResourceRequest, needs: ResourceNeeds): Promise<Pod> {
  const object = await presentObject(request, needs)
  if (!isPod(object)) throw new ApiError('InternalError', `${object.kind} is not a Pod`)
  return object
}

/** `asked` is '' where the client names none. Throws BadRequest where the pod has no such container, or several. */
export function containerOfPod({ metadata, spec }: Pod, asked: string): string {
  const pod = metadata.name ?? ''
  const names = (containers: readonly { readonly name: string }[] = []) => containers.map(({ name }) => name)
  const [own, initial, ephemeral] = [
    names(spec.containers),
    names(spec.initContainers),
    names(spec.ephemeralContainers),
  ]
  if (asked !== '') {
    if ([...own, ...initial, ...ephemeral].includes(asked)) return asked
    throw new ApiError('BadRequest', `container ${asked} is not valid for pod ${pod}`)
  }
  const [only, ...others] = own
  if (only !== undefined && others.length === 0) return only
  const choice = own.length === 0 ? '' : `, choose one of: [${own.join(' ')}]`
  const initChoice = initial.length === 0 ? '' : ` or one of the init containers: [${initial.join(' ')}]`
  throw new ApiError('BadRequest', `a container name must be specified for pod ${pod}${choice}${initChoice}`)
}

/** Throws BadRequest for a pod that no node runs. */
export function assertAssigned({ metadata, spec }: Pod): void {
  if (!spec.nodeName) throw new ApiError('BadRequest', `pod ${metadata.name} does not have a host assigned`)
}

function isPod(object: AnyObject): object is Pod {
  return object.kind === 'Pod'
}
