/** create of pods/binding: what a scheduler outside of the controller sends (pkg/registry/core/pod/storage/storage.go). */
import { ApiError, conflict, notFound } from '../../../api/api-error.ts'
import { ObjectMetaSchema, ObjectReferenceSchema } from '../../../api/meta.ts'
import type { Node } from '../../../api/node.ts'
import { boundPod } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import { field, object, optional, text } from '../../../api/schema.ts'
import { cannotMount } from '../../../api/storage/node-claim.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { rewrite } from '../../store/rewrite.ts'
import { keyOfRoute } from '../handlers/resource-request.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { isDryRun, parseBody, readAs } from '../wire/request-body.ts'
import { successStatus } from '../wire/status-errors.ts'

export const BindingSchema = object({
  apiVersion: optional(text),
  kind: optional(text),
  metadata: field(1, ObjectMetaSchema),
  target: field(2, ObjectReferenceSchema),
})

/** A pod is bound once and for good. */
export async function bindPod(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const dryRun = isDryRun(query)
  const input = parseBody(await request.readBody(), request, { schema: BindingSchema }, needs.parseYaml)
  const { metadata, target } = readAs(BindingSchema, 'Binding', input)
  const node = target.name ?? ''
  if (node === '' || (target.kind ?? 'Node') !== 'Node') {
    throw new ApiError('BadRequest', 'the target of a binding must be a node, by its name')
  }
  const present = await needs.store.get('nodes', { namespace: '', name: node })
  const change = (pod: Pod) => {
    const problem = bindingProblem(pod) ?? agentProblem(pod, present)
    const isOther = metadata.uid !== undefined && metadata.uid !== pod.metadata.uid
    if (isOther) throw conflict({ name: 'pods/binding', group: '' }, route.name, 'this is another pod of that name')
    if (problem !== undefined) throw conflict({ name: 'pods/binding', group: '' }, route.name, problem)
    return dryRun ? undefined : boundPod(pod, node, rfc3339(needs.clock.wallMs()))
  }
  const written = await rewrite(needs, 'pods', { key: keyOfRoute(route), change })
  if (written === undefined && !dryRun) throw notFound(route.resource, route.name)
  return objectAnswer(successStatus(), 201)
}

function bindingProblem({ metadata, spec }: Pod): string | undefined {
  if (metadata.deletionTimestamp !== undefined) {
    return `pod ${metadata.name} is being deleted, cannot be assigned to a host`
  }
  if ((spec.schedulingGates ?? []).length > 0) return `pod ${metadata.name} has non-empty .spec.schedulingGates`
  if (spec.nodeName) return `pod ${metadata.name} is already assigned to node "${spec.nodeName}"`
  return undefined
}

/** Its containers would wait there for ever. */
function agentProblem(pod: Pod, node: Node | undefined): string | undefined {
  if (node === undefined || !cannotMount(node, pod)) return undefined
  return `node "${node.metadata.name}" runs a version of bramble-agent that does not mount persistentVolumeClaims: update it`
}
