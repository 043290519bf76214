/** Errors of containers as statuses show them: the engine keeps its message, which may have values of variables, with the container. */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { OptionSources } from '../containers/container-start.ts'
import { containerEnv } from '../options/container-env.ts'
import { withoutValues } from '../options/hidden-values.ts'
import { containersOf } from '../record/pod-containers.ts'

const hidden = "not started; the engine's message may have values of variables, which are no longer known"

/** The containers with errors that have no values of variables. `sources` is called only where there is an error. */
export function withShownErrors(
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  sources: () => OptionSources,
): readonly RuntimeContainer[] {
  if (pod === undefined || containers.every(({ error }) => error === '')) return containers
  const { ip, ipv6 } = containers.find(({ identity }) => identity.kind === 'sandbox') ?? {}
  const known = { ...sources(), podIP: ip, otherPodIP: ipv6 }
  return containers.map((one) => {
    const spec = containersOf(pod).find(({ name }) => name === one.identity.containerName)
    if (one.error === '' || spec === undefined) return one
    const environment = containerEnv(pod, spec, known)
    if (!environment.ok) return { ...one, error: `${hidden}: ${environment.message}` }
    const env = [...environment.values].map(([name, value]) => ({ name, value }))
    return { ...one, error: withoutValues(one.error, env) }
  })
}
