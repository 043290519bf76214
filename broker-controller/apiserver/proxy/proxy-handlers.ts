/** nodes/proxy, pods/proxy and services/proxy: requests to the agent of a node, to another port of a node, and to a port of a pod. */
import { ApiError, isApiError, notFound } from '../../../api/api-error.ts'
import type { SessionRequest } from '../../../api/sessions.ts'
import { hostPort } from '../../../api/text/ip-address.ts'
import { podIn } from '../../sessions/pod-in-session.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { assertAssigned } from '../streams/container-of-pod.ts'
import { openSession } from '../streams/node-session.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { proxyExchange, proxyFailure } from './proxy-exchange.ts'
import { requestHeaders, rewrittenLocation } from './proxy-headers.ts'
import { podPort, proxyTarget, serviceTarget } from './proxy-target.ts'
import { serviceAddresses } from './service-endpoint.ts'
import { connectionOn } from './session-connection.ts'

/** Where clients expect the kubelet, as in `NODE:10250`; 10255 was its port for reading. */
const kubeletPorts: readonly (number | undefined)[] = [undefined, 10_250, 10_255]

/** Throws the ApiError of a refusal. */
export async function proxyToNode(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const target = proxyTarget(request.route.name, 'node')
  const node = await needs.store.get('nodes', { namespace: '', name: target.name })
  if (node === undefined) throw notFound(request.route.resource, target.name)
  const isAgent = kubeletPorts.includes(target.port)
  const host = node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address ?? target.name
  return proxied(request, needs, {
    node: target.name,
    session: { node: isAgent || target.port === undefined ? {} : { port: target.port } },
    scheme: isAgent ? 'http' : target.scheme,
    host: isAgent || target.port === undefined ? host : hostPort(host, target.port),
  })
}

/** Throws the ApiError of a refusal. */
export async function proxyToPod(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { namespace, resource, name } = request.route
  const target = proxyTarget(name, 'pod')
  const pod = await needs.store.get('pods', { namespace, name: target.name })
  if (pod === undefined) throw notFound(resource, target.name)
  assertAssigned(pod)
  const port = podPort(pod, target)
  return proxied(request, needs, {
    node: pod.spec.nodeName ?? '',
    session: { ...podIn(pod), proxy: { port } },
    scheme: target.scheme,
    host: hostPort(pod.status?.podIP ?? target.name, port),
  })
}

/** To one of the ready pods of the Service. Throws the ApiError of a refusal. */
export async function proxyToService(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { namespace, name } = request.route
  const target = serviceTarget(name)
  const search = { key: { namespace, name: target.name }, port: target.port, id: name }
  for await (const { ip, port, pod } of serviceAddresses(needs, search)) {
    // As Kubernetes: the proxy leads to pods only.
    if (pod === undefined) continue
    return proxied(request, needs, {
      node: pod.spec.nodeName ?? '',
      session: { ...podIn(pod), proxy: { port } },
      scheme: target.scheme,
      host: hostPort(ip, port),
    })
  }
  throw new ApiError('InternalError', `no address of service ${JSON.stringify(name)} was tried`)
}

type Place = {
  readonly node: string
  readonly session: SessionRequest
  readonly scheme: 'http' | 'https'
  /** As the server behind the proxy may write it in a redirect. */
  readonly host: string
}

async function proxied(request: ResourceRequest, needs: ResourceNeeds, place: Place): Promise<ApiResponse> {
  const { raw, route, offered } = request
  if (raw === undefined) throw new ApiError('InternalError', 'the request cannot be forwarded')
  const path = route.rest ?? ''
  const prefix = attributeSafe(raw.path.slice(0, raw.path.length - path.length))
  const query = raw.query === '' ? '' : `?${raw.query}`
  const isUpgrade = offered !== undefined
  if (path === '' && !isUpgrade && (raw.method === 'GET' || raw.method === 'HEAD')) {
    // As kube-apiserver: relative links of the page need it (kubernetes issue 4958).
    return { kind: 'proxied', code: 301, reason: '', headers: ['Location', `${raw.path}/${query}`], pieces: nothing() }
  }
  const { method, headers, address } = raw
  const hosts = [place.host, headerIn(headers, 'host')].filter((one) => one !== '')
  const frames = await openSession(place.node, place.session, request, needs).catch((cause) => {
    if (isApiError(cause) && cause.reason === 'InternalError') throw proxyFailure(cause.message, cause)
    throw cause
  })
  return proxyExchange({
    connection: connectionOn(frames),
    scheme: place.scheme,
    raw,
    path: `${path === '' ? '/' : path}${query}`,
    headers: requestHeaders({ method, headers, address, uri: raw.path, isUpgrade }),
    isUpgrade,
    rewriteLocation: (location) => rewrittenLocation(location, prefix, hosts),
    clock: needs.clock,
  })
}

/** A path that cannot end the attribute of a page in which it is written. */
function attributeSafe(path: string): string {
  return path.replace(
    /["'<>&`=\\\s]/g,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
  )
}

function headerIn(headers: readonly string[], wanted: string): string {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === wanted)
  return at < 0 ? '' : (headers[at + 1] ?? '')
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // The answer has no body.
}
