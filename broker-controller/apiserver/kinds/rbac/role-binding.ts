/** rbac.authorization.k8s.io/v1 RoleBinding. */
import type { RoleBinding } from '../../../../api/access/role-binding.ts'
import { resources } from '../../../../api/resources.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { bindingRules } from './binding-rules.ts'

export const roleBindingStrategy: KindStrategy<RoleBinding> = { ...resources.rolebindings, ...bindingRules() }
