/** The answers below `/openapi`: the documents, in the forms and with the headers by which clients keep them. */
import type { DiscoveryNeeds } from '../aggregator/discovery-needs.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { prefersProtobufDocument } from '../wire/content-negotiation.ts'
import { hashOf, type OpenApiDocument, openApiDocuments } from './documents.ts'

export type OpenApiRequest = {
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string | undefined
  /** The hash in quotes that the client has a document of. */
  readonly ifNoneMatch: string | undefined
}

/** Undefined where the path is not one of these. */
export async function openApiAnswer(
  request: OpenApiRequest,
  needs: DiscoveryNeeds,
  version: string,
): Promise<ApiResponse | undefined> {
  const { path, accept } = request
  const documents = openApiDocuments(needs.kinds, version)
  if (path === '/openapi/v2') {
    return prefersProtobufDocument(accept)
      ? documentAnswer(await documents.v2Protobuf(), request, protobufType)
      : documentAnswer(await documents.v2(), request)
  }
  if (path === '/openapi/v3') return documentAnswer(withExtensions(await documents.index(), needs), request)
  const [, group] = /^\/openapi\/v3\/(.+)$/.exec(path) ?? []
  const document = group === undefined ? undefined : await documents.ofGroup(group)
  return document && documentAnswer(document, request)
}

/** The descriptions of extension servers are theirs: the paths lead to them. */
function withExtensions(own: OpenApiDocument, { apiServices, extensions }: DiscoveryNeeds): OpenApiDocument {
  const found = (apiServices?.remotes() ?? []).flatMap((apiService) => {
    const hash = extensions?.descriptionHash(apiService)
    if (hash === undefined) return []
    const { group = '', version = '' } = apiService.spec
    const path = `apis/${group}/${version}`
    return [[path, { serverRelativeURL: `/openapi/v3/${path}${hash === '' ? '' : `?hash=${hash}`}` }] as const]
  })
  if (found.length === 0) return own
  const { paths } = JSON.parse(own.bytes.toString()) as { readonly paths: object }
  const bytes = Buffer.from(JSON.stringify({ paths: { ...paths, ...Object.fromEntries(found) } }))
  return { bytes, hash: hashOf(bytes) }
}

/** Spelled with a dot: with the `@` of the request kubectl cannot parse it. */
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

/** A document under its own hash never changes (kube-openapi, handler3: HandleGroupVersion). */
function documentAnswer(
  { bytes, hash }: OpenApiDocument,
  { query, ifNoneMatch }: OpenApiRequest,
  contentType = 'application/json',
): ApiResponse {
  const etag = `"${hash}"`
  const isImmutable = query.get('hash') === hash
  const code = matches(ifNoneMatch, etag) ? 304 : 200
  return { kind: 'document', code, bytes, contentType, etag, isImmutable }
}

/** `*`, or one of the tags of the list (RFC 9110, 13.1.2; weakly compared). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((one) => ['*', etag].includes(one.trim().replace(/^W\//, '')))
}
