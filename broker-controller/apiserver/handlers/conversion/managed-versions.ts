/**
 * What a write changes for the managers of fields in other versions, whose fields have other names there (apimachinery,
 * managedfields/internal/versionconverter.go).
 */
import type { AnyObject } from '../../../../api/meta.ts'
import { apiVersionOf } from '../../../../api/resources.ts'
import type { AnyStored } from '../../../store/store.ts'
import type { OtherVersions } from '../../managed-fields/managers.ts'
import { applySchema } from '../../structural/apply-schema.ts'
import { type KindStrategy, shownForm } from '../strategy.ts'
import type { ConversionGate } from './conversion-gate.ts'

/**
 * `prepare`: the object after the write, with the managers that it has. undefined: all managers name fields of the version of `kind`, or
 * versions have the same fields. Throws the ApiError of a webhook that fails.
 */
export async function versionsOfManagers(
  kind: KindStrategy,
  present: AnyStored,
  prepare: () => AnyObject,
  conversions: Pick<ConversionGate, 'converted'> | undefined,
): Promise<OtherVersions | undefined> {
  const conversion = kind.defined?.conversion
  const named = new Set(present.metadata.managedFields?.flatMap(({ apiVersion }) => apiVersion ?? []))
  named.delete(apiVersionOf(kind))
  if (conversion === undefined || conversions === undefined || named.size === 0) return undefined
  const both = [shownForm(kind, present), shownForm(kind, prepare())]
  const versions = new Map<string, ReturnType<OtherVersions['get']>>()
  for (const apiVersion of named) {
    const schema = conversion.schemas.get(apiVersion)
    const [before, after] = schema === undefined ? [] : await conversions.converted(both, kind, apiVersion)
    const isThere = schema !== undefined && before !== undefined && after !== undefined
    versions.set(apiVersion, isThere ? { schema: applySchema(schema), before, after } : undefined)
  }
  return versions
}
