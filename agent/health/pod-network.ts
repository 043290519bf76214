/** Can pods get a network with the addresses that the controller assigned to this node? */
import { type Finding, fine, wrong } from './finding.ts'

/** `problem`: why there is no network for them; undefined when there is one, or no pod has asked for one yet. */
export function podNetworkUnavailable(problem: string | undefined): Finding {
  return problem === undefined
    ? fine('PodNetworkAvailable', 'Nothing keeps pods from a network of their own')
    : wrong('PodNetworkNotCreated', problem)
}
