/** Connections of the API to what answers for a Service: through the node of a pod, or to an address that is not a pod's. */
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import { podIn } from '../../sessions/pod-in-session.ts'
import type { ObjectKey, Store } from '../../store/store.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { openSession } from '../streams/node-session.ts'
import { serviceAddresses } from './service-endpoint.ts'
import { connectionOn } from './session-connection.ts'

/** Whose share of the streams to nodes a connection takes from. */
export type StreamSender = Pick<ResourceRequest, 'identity' | 'streamOwner' | 'signal'>

export interface ServiceConnections {
  /**
   * Resolves with a connection to a ready endpoint of the Service's port. Throws the ApiError NotFound or ServiceUnavailable, and
   * the error of the connection. It ends when `signal` aborts. `sender` undefined: this API itself.
   */
  connect(service: ObjectKey, port: number, signal: AbortSignal, sender?: StreamSender): Promise<Duplex>
}

export type ServiceConnectionNeeds = Pick<ResourceNeeds, 'sessions' | 'clock' | 'random'> & {
  readonly store: Pick<Store, 'get'>
}

/** Whose sessions they are. */
const apiServer: Identity = { user: 'system:apiserver', groups: ['system:masters'] }

export function serviceConnections(needs: ServiceConnectionNeeds): ServiceConnections {
  return {
    async connect(key, port, signal, sender = { identity: apiServer, signal }) {
      const service = await needs.store.get('services', key)
      // As the lister of kube-apiserver names it.
      if (service === undefined) throw new ApiError('NotFound', `service "${key.name}" not found`)
      const { type = 'ClusterIP' } = service.spec ?? {}
      if (type === 'ExternalName') throw new ApiError('InternalError', `unsupported service type "${type}"`)
      const addresses = serviceAddresses(needs, { key, port: String(port), id: key.name })
      const { value: found } = await addresses.next()
      if (found.pod === undefined) return await direct(found.ip, found.port, signal)
      const session = { ...podIn(found.pod), proxy: { port: found.port } }
      const node = found.pod.spec.nodeName ?? ''
      return connectionOn(await openSession(node, session, sender, needs))
    },
  }
}

async function direct(host: string, port: number, signal: AbortSignal): Promise<Duplex> {
  // With a signal that is aborted already, Node.js 20 reports the error and connects all the same.
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
