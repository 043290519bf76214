/**
 * Loop: keeps the ConfigMap by which extension servers recognize clients and this API (pkg/controlplane/controller/
 * clusterauthenticationtrust).
 */
import { X509Certificate } from 'node:crypto'
import { isApiError } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { certificatesIn } from '../../../api/text/pem.ts'
import { frontProxyName } from '../../../certs/issue.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import { extraHeaderPrefix, groupHeader, uidHeader, userHeader } from './remote-user.ts'

export type ExtensionAuthenticationNeeds = {
  readonly store: Store
  /** The authorities of the fleet's client certificates, PEM. */
  readonly clientAuthorities: () => string
  /** That of the front proxy, PEM. */
  readonly proxyAuthority: () => Promise<string>
  readonly clock: Clock
  readonly log: Log
}

const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
const proxyAuthorities = 'requestheader-client-ca-file'
const checkMs = 60_000
/** Controllers that were not given the same files have authorities of their own. */
const mostProxyAuthorities = 8

/** `present`: what the ConfigMap has; other fields of it stay. */
export function authenticationData(
  present: ConfigMap['data'] = {},
  { clientAuthorities, proxyAuthority }: { readonly clientAuthorities: string; readonly proxyAuthority: string },
  nowMs: number,
): NonNullable<ConfigMap['data']> {
  // The controller that led before may lead again: servers take a while to read the ConfigMap.
  const earlier = certificatesIn(present[proxyAuthorities] ?? '').filter((one) => isValid(one, nowMs))
  const all = [...new Set([...certificatesIn(proxyAuthority), ...earlier].map((pem) => pem.trim()))]
  return {
    ...present,
    'client-ca-file': clientAuthorities,
    [proxyAuthorities]: `${all.slice(0, mostProxyAuthorities).join('\n')}\n`,
    'requestheader-allowed-names': JSON.stringify([frontProxyName]),
    'requestheader-username-headers': JSON.stringify([userHeader]),
    'requestheader-uid-headers': JSON.stringify([uidHeader]),
    'requestheader-group-headers': JSON.stringify([groupHeader]),
    'requestheader-extra-headers-prefix': JSON.stringify([extraHeaderPrefix]),
  }
}

function isValid(pem: string, nowMs: number): boolean {
  try {
    const { ca, validTo } = new X509Certificate(pem)
    return ca && Date.parse(validTo) > nowMs
  } catch {
    return false
  }
}

export type ExtensionAuthentication = Loop & {
  /** Writes it now: the authorities have changed. */
  refresh(): Promise<void>
}

export function extensionAuthentication(needs: ExtensionAuthenticationNeeds): ExtensionAuthentication {
  const { store, clock, log } = needs
  const write = async () => {
    const authorities = {
      clientAuthorities: needs.clientAuthorities(),
      proxyAuthority: await needs.proxyAuthority(),
    }
    const dataFrom = (present?: ConfigMap['data']) => authenticationData(present, authorities, clock.wallMs())
    if ((await store.get('configmaps', key)) === undefined) {
      try {
        const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: dataFrom() }
        return void (await store.create('configmaps', map))
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error
      }
    }
    await rewrite({ store, clock }, 'configmaps', {
      key,
      change(present) {
        const data = dataFrom(present.data)
        return equalJSON(data, present.data) ? undefined : { ...present, data }
      },
    })
  }
  const refresh = async () => {
    await write().catch((error: unknown) =>
      log.warn('Cannot write what extension servers trust, trying again in a minute', { error: messageOf(error) }),
    )
  }
  return {
    name: 'extension-authentication',
    refresh,
    async run(signal) {
      while (!signal.aborted) {
        await refresh()
        await clock.sleep(checkMs, signal)
      }
    },
  }
}
