/** A step that changes files which are not in the store is done where a controller leads: it publishes the change, the others follow. */
import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import type { ApiClient } from '../../daemon/api-client.ts'
import { adminSocketPath, requestLeaderStatus } from './connection/admin-socket.ts'

export type StandbyCheckNeeds = {
  readonly dataDir: string
  /** The command line to type on the leader's machine. */
  readonly command: string
  /** Rejects where no API is reached. */
  readonly client: () => Promise<ApiClient>
  readonly signal: AbortSignal
}

/**
 * Throws with the address of the leader where it is another controller. The running controller of this machine is asked; where
 * none runs, and another one answers, it is not the leader either.
 */
export async function refuseOnStandby({ dataDir, command, client, signal }: StandbyCheckNeeds): Promise<void> {
  const status = await requestLeaderStatus(adminSocketPath(dataDir), signal)
  if (status?.leads) return
  if (status === undefined) {
    const [leader, ...others] = await controllerServers(client, signal)
    if (others.length === 0) return
    throw new Error(`No controller runs on ${dataDir}, and ${leader} leads: run '${command}' on that machine`)
  }
  const { leader } = status
  throw new Error(
    leader === undefined
      ? `The controller on this machine stands by, and no controller leads now: run '${command}' where one leads`
      : `The controller on this machine stands by, and ${leader} leads: run '${command}' on that machine`,
  )
}

/** `https://HOST:PORT` of all controllers of the fleet, that of the leader first. Empty: it is one, or none answers. */
export async function controllerServers(
  client: () => Promise<ApiClient>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
  const answer = await client()
    .then((one) => one.get(path, signal))
    .catch(() => undefined)
  const info = decode(ConfigMapSchema, answer?.body)
  return ((info.ok && info.value.data?.['apiServers']) || '').split('\n').filter((server) => server !== '')
}

/** What is to be done with `files` after such a step; empty where this is the only controller, or none answers. */
export async function copyNote(files: string, client: () => Promise<ApiClient>, signal: AbortSignal): Promise<string> {
  const servers = await controllerServers(client, signal)
  if (servers.length < 2) return ''
  return `Copy ${files} to the other controllers now, and restart them (the fleet has ${servers.join(', ')}).\n`
}
