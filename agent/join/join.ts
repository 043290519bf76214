/** Joining a fleet: make sure it is the right one, ask for a certificate, wait for it, keep it. */
import { X509Certificate } from 'node:crypto'
import { type ConfigMap, ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import { formatToken } from '../../api/node/bootstrap-token.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import { privateKeyPem } from '../../certs/authority.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { authorityIn, readServerChain } from '../../certs/server-chain.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { withDeadline } from '../../daemon/deadline.ts'
import type { KnownTime } from '../../daemon/server-check.ts'
import { obstacleText } from '../network/gate/network-obstacle.ts'
import type { FleetRanges } from '../network/peers/home-networks.ts'
import { type PublishedServers, publishedServers } from '../node/connection/controller-servers.ts'
import { reached, requestCertificate } from './certificate-request.ts'
import { clockTrouble, strangeAnswer, unreachable, wrongHash } from './failures.ts'
import { type AgentIdentity, readIdentity, writeIdentity } from './identity.ts'
import type { JoinNeeds, JoinRequest } from './join-request.ts'

/**
 * The identity this machine now has, already written to the data directory in place of any earlier one. Rejects with a
 * `JoinError` on failure; nothing is written then.
 */
export async function join(request: JoinRequest, needs: JoinNeeds): Promise<AgentIdentity> {
  const { url, nodeName } = request
  const { authority, knownTime } = await trustedAuthority(request, needs)
  const ca = authority.toString()
  needs.print(`The authority of ${url.host} is the expected one`)

  const token = formatToken(request.token)
  const client = apiClient({ url: url.origin, ca, knownTime, token, ...(await proofOf(request)) })
  const { certificate, key } = await requestCertificate(request, { client, authority }, needs)
  needs.print(`This machine has its certificate as node ${nodeName}`)

  const ours = { certificate, key: privateKeyPem(key) }
  const found = await clusterInfoOf(url, apiClient({ url: url.origin, ca, knownTime, ...ours }), needs.signal)
  const addresses = { apiUrl: url.origin, mqttUrl: `mqtts://${url.hostname}:${found.mqttPort}` }
  const identity = { nodeName, ...addresses, ...found.servers, ca, ...ours }
  await writeIdentity(request.dataDir, identity)
  if (found.ranges !== undefined) await warnOfObstacle(found.ranges, needs)
  return identity
}

/** No reason not to join: the machine runs pods all the same. */
async function warnOfObstacle(ranges: FleetRanges, { obstacleTo, print, warns = print }: JoinNeeds): Promise<void> {
  const obstacle = await obstacleTo(ranges).catch(() => undefined)
  if (obstacle !== undefined) warns(`Warning: ${obstacleText(obstacle)}. ${obstacle.remedy}`)
}

/**
 * The certificate that this machine has as this node of this fleet, ended or not: shown beside the token it proves that
 * the machine may have the name again.
 */
async function proofOf({ dataDir, nodeName, caHash: wanted }: JoinRequest) {
  const identity = await readIdentity(dataDir).catch(() => undefined)
  if (identity?.nodeName !== nodeName) return {}
  const isOfFleet = certificatesIn(identity.ca).some((pem) => caHash(new X509Certificate(pem)) === wanted)
  return isOfFleet ? { certificate: identity.certificate, key: identity.key } : {}
}

/** For the name, TCP and TLS. */
const chainMs = 15_000

type Trusted = { readonly authority: X509Certificate; readonly knownTime: KnownTime }

async function trustedAuthority(request: JoinRequest, { clock, signal }: JoinNeeds): Promise<Trusted> {
  const { url } = request
  const reading = withDeadline(chainMs, signal, (own) => readServerChain(url, own), 'no answer')
  const chain = await reading.catch((error: unknown) => {
    signal.throwIfAborted()
    throw unreachable(url, error)
  })
  const authority = authorityIn(chain, request.caHash)
  if (authority === undefined) throw wrongHash(url.host, request.caHash, chain.map(caHash))
  const trouble = clockTrouble(chain, clock.wallMs()) // before OpenSSL reports it without the times
  if (trouble !== undefined) throw trouble
  // A clock that shows a time before the given authority existed is wrong: it is then at least as late as that.
  const begunMs = Math.max(...chain.map(({ validFrom }) => Date.parse(validFrom)))
  const knownTime = {
    isClockRight: () => clock.wallMs() >= begunMs,
    earliestMs: () => begunMs,
    learn: () => undefined,
  }
  return { authority, knownTime }
}

/** `servers`: those of several controllers; the port is that of the leading one. */
type ClusterInfoFacts = {
  readonly mqttPort: number
  readonly servers: PublishedServers
  /** undefined: the fleet has no network of its own, or a controller of an earlier version. */
  readonly ranges: FleetRanges | undefined
}

/** Asked with the new certificate, which is thereby seen to work. */
async function clusterInfoOf(url: URL, client: ApiClient, signal: AbortSignal): Promise<ClusterInfoFacts> {
  const answer = await reached(
    url,
    client.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', signal),
    signal,
  )
  const decoded = answer.status === 200 ? decode(ConfigMapSchema, answer.body) : undefined
  const data = decoded?.ok ? decoded.value.data : undefined
  const mqttPort = Number(data?.['mqttPort'])
  const linesOf = (name: string) => data?.[name]?.split('\n') ?? []
  const servers = publishedServers({ apiServers: linesOf('apiServers'), mqttServers: linesOf('mqttServers') })
  if (Number.isInteger(mqttPort) && mqttPort > 0 && mqttPort < 65_536) {
    return { mqttPort, servers: servers.mqttServers.length === 0 ? {} : servers, ranges: rangesIn(data) }
  }
  throw strangeAnswer(url, 'asking for the MQTT port in kube-public/cluster-info', answer)
}

function rangesIn(data: ConfigMap['data'] = {}): FleetRanges | undefined {
  const { clusterCIDR, serviceCIDR, ipv6ClusterCIDR, ipv6ServiceCIDR } = data
  if (clusterCIDR === undefined || serviceCIDR === undefined) return undefined
  if (ipv6ClusterCIDR === undefined || ipv6ServiceCIDR === undefined) return { clusterCIDR, serviceCIDR }
  return { clusterCIDR, serviceCIDR, ipv6: { clusterCIDR: ipv6ClusterCIDR, serviceCIDR: ipv6ServiceCIDR } }
}
