/** Puts together what leads to extension servers, and what they read of this fleet. */
import type { Issued } from '../../../certs/issue.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Store } from '../../store/store.ts'
import type { ServiceConnections } from '../proxy/service-connections.ts'
import type { ApiServices } from './api-services.ts'
import { extensionAuthentication } from './extension-authentication.ts'
import { extensionContent } from './extension-content.ts'
import { extensionDiscovery } from './extension-discovery.ts'
import { extensionObjects } from './extension-objects.ts'
import { extensionProxy } from './extension-proxy.ts'
import { extensionServers } from './extension-servers.ts'

export type ExtensionNeeds = {
  readonly apiServices: ApiServices
  readonly connections: ServiceConnections
  /** What this API shows to them, and the authority of that. */
  readonly proxy: {
    authority(): Promise<{ readonly certificate: string }>
    client(): Promise<Issued>
  }
  /** The authorities of the fleet's client certificates, PEM. */
  readonly clientAuthorities: () => string
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

export function openExtensions({ apiServices, connections, proxy, clientAuthorities, ...needs }: ExtensionNeeds) {
  const servers = extensionServers({ connections, client: proxy.client })
  const proxyAuthority = async () => (await proxy.authority()).certificate
  const discovery = extensionDiscovery({ ...needs, apiServices, servers })
  return {
    servers,
    authentication: extensionAuthentication({ ...needs, clientAuthorities, proxyAuthority }),
    discovery,
    content: extensionContent({ apiServices, discovery, servers }),
    objects: extensionObjects({ apiServices, discovery, servers, clock: needs.clock }),
    proxy: extensionProxy({ ...needs, servers }),
  }
}
