/** core/v1 ServiceAccount (pkg/registry/core/serviceaccount/strategy.go). */

import type { ServiceAccount } from '../../../../api/access/service-account.ts'
import { TokenRequestSchema } from '../../../../api/access/token-request.ts'
import { resources } from '../../../../api/resources.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { requestToken } from './token-request.ts'

const serviceAccountTable: TableOf<ServiceAccount> = {
  columns: tableColumns('Name', 'Secrets', 'Age'),
  cells: ({ metadata, secrets = [] }, nowMs) => [
    metadata.name ?? '',
    secrets.length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const mountableSecrets = 'kubernetes.io/enforce-mountable-secrets'

/** In the words of warnIfHasEnforceMountableSecretsAnnotation. */
function secretAnnotationWarnings({ metadata }: ServiceAccount): readonly string[] {
  const because = 'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets'
  const isSet = metadata.annotations?.[mountableSecrets] !== undefined
  return isSet ? [`metadata.annotations[${mountableSecrets}]: ${because}`] : []
}

export const serviceAccountStrategy: KindStrategy<ServiceAccount> = {
  ...resources.serviceaccounts,
  returnsDeletedObject: true,
  table: serviceAccountTable,
  selectableFields: [],
  warningsOnCreate: secretAnnotationWarnings,
  warningsOnUpdate: (old, now) =>
    old.metadata.annotations?.[mountableSecrets] === undefined ? secretAnnotationWarnings(now) : [],
  subresources: {
    token: {
      access: 'create',
      kind: 'TokenRequest',
      group: 'authentication.k8s.io',
      version: 'v1',
      body: TokenRequestSchema,
      create: requestToken,
    },
  },
}
