/** Short forms for the rules of roles. */
import type { PolicyRule } from '../../api/access/role.ts'

/** Verbs on resources of one API group; verbs in one text, with blanks between. */
export function onResources(verbs: string, group: string, ...resources: readonly string[]): PolicyRule {
  return { verbs: verbs.split(' '), apiGroups: [group], resources }
}

export const readVerbs = 'get list watch'
export const writeVerbs = 'create update patch delete deletecollection'
