/** The dialogue with one socket of the registration folder (pkg/kubelet/pluginmanager/operationexecutor). */
import { messageOf } from '../../../daemon/errors.ts'
import type { NodeDriver } from '../../pods/volumes/csi/node-drivers.ts'
import { pluginProblem } from '../../pods/volumes/csi/plugin-problem.ts'
import type { RegisteredDriver } from './csi-calls.ts'
import type { CsiClient, CsiRegistration } from './csi-client.ts'

export type RegisteredPlugin = RegisteredDriver & { readonly node: NodeDriver }

type Clients = {
  readonly csiClient: (socket: string) => CsiClient
  readonly csiRegistration: (socket: string) => CsiRegistration
}

/** `holder`: the socket that has a driver of this name. Rejects if the plugin cannot be used; it has then been notified of the reason. */
export async function registeredPlugin(
  socket: string,
  { holder }: { readonly holder: (driver: string) => string | undefined },
): Promise<RegisteredPlugin> {
  // Loaded with the first driver.
  const { csiClient, csiRegistration }: Clients = await import('./csi-client.ts')
  const registration = csiRegistration(socket)
  const info = await registration.getInfo()
  try {
    const taken = holder(info.name)
    const problem =
      pluginProblem(info, socket) ?? (taken && `driver ${info.name} is registered with the socket ${taken}`)
    if (problem) throw new Error(problem)
    const client = csiClient(info.endpoint)
    const [{ nodeId, maxVolumes, topology }, capabilities] = await Promise.all([
      client.nodeInfo(),
      client.capabilities(),
    ])
    if (nodeId === '') throw new Error(`driver ${info.name} has no ID for this node`)
    const node = { name: info.name, nodeID: nodeId, topology, ...(maxVolumes !== undefined && { maxVolumes }) }
    // The node mounts volumes with it from now on, also while no controller is reached.
    await registration.notify('')
    return { client, capabilities, node }
  } catch (error) {
    await registration.notify(messageOf(error)).catch(() => undefined)
    throw error
  }
}
