/** rbac.authorization.k8s.io/v1 ClusterRoleBinding. */
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import { resources } from '../../../../api/resources.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { bindingRules } from './binding-rules.ts'

export const clusterRoleBindingStrategy: KindStrategy<ClusterRoleBinding> = {
  ...resources.clusterrolebindings,
  ...bindingRules(),
}
