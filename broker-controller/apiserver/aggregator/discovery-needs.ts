/** What discovery and OpenAPI list: the kinds of the fleet, and what extension servers report that they serve. */
import type { APIService } from '../../../api/registration/api-service.ts'
import type { KindRegistry } from '../handlers/strategy.ts'
import type { ApiServices } from './api-services.ts'
import type { ExtensionDescription } from './extension-description.ts'
import type { ExtensionResource } from './extension-documents.ts'

export type DiscoveryNeeds = {
  readonly kinds: KindRegistry
  /** undefined: no extension servers, and the priorities that Kubernetes gives its groups. */
  readonly apiServices?: ApiServices
  /** What extension servers serve; undefined: that is not known here. */
  readonly extensions?: ExtensionDiscovery
}

export interface ExtensionDiscovery {
  /** What the server of this APIService serves, as the aggregated form lists it. Empty where it has never answered. */
  versionOf(apiService: APIService): DiscoveredVersion
  /** Hash of its OpenAPI v3 document, '' where the server names no hash; undefined: there is no document. */
  descriptionHash(apiService: APIService): string | undefined
  /** What it has in OpenAPI v2; undefined: nothing that can be read, or nothing yet. */
  description(apiService: APIService): ExtensionDescription | undefined
}

export type DiscoveredVersion = {
  /** Stale: its server does not answer at the moment. */
  readonly freshness: 'Current' | 'Stale'
  readonly resources: readonly ExtensionResource[]
}
