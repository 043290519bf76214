/** A pod as its isolation needs it, from its containers. */

import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { FoundPod } from '../admission/pod-isolation.ts'

type Addresses = {
  readonly ip: string | undefined
  readonly ipv6: string | undefined
  readonly sandbox: FoundPod['sandbox']
}

/** Undefined without an address. */
export function foundPod(
  named: Pick<FoundPod, 'pod' | 'path'>,
  { ip, ipv6, sandbox }: Addresses,
): FoundPod | undefined {
  if (ip === undefined) return undefined
  return { ...named, ip, ...(ipv6 && { ipv6 }), ...(sandbox && { sandbox }) }
}

/** Sandbox of a running pod with its own network; undefined: it has none. */
export function networkSandbox(containers: readonly RuntimeContainer[]): FoundPod['sandbox'] {
  const { id, pid, mac } = containers.find(({ identity, ip }) => identity.kind === 'sandbox' && ip !== undefined) ?? {}
  return id === undefined || pid === undefined || mac === undefined ? undefined : { id, pid, mac }
}
