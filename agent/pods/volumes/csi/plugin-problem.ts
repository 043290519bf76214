/** Why a plugin cannot be registered, in the words of the kubelet (pkg/volume/csi/csi_plugin.go). Pure. */
import { csiDriverNameProblems } from '../../../../api/validation/volume-validation.ts'

export type PluginFacts = {
  readonly type: string
  readonly name: string
  readonly endpoint: string
  readonly supportedVersions: readonly string[]
}

/** The path of a Unix socket in the kernel has 108 bytes with its end. */
const longestSocket = 107

export function pluginProblem(
  { type, name, endpoint, supportedVersions }: PluginFacts,
  socket: string,
): string | undefined {
  if (type !== 'CSIPlugin') return `no handler registered for plugin type: ${type.slice(0, 64)} at socket ${socket}`
  if (csiDriverNameProblems('name', name).length > 0)
    return `${JSON.stringify(name.slice(0, 64))} is not the name of a driver`
  const isSocket = endpoint.startsWith('/') && !endpoint.split('/').includes('..') && endpoint.length <= longestSocket
  if (!isSocket || endpoint.includes('\0'))
    return `${JSON.stringify(endpoint.slice(0, 128))} is not the path of a socket`
  if (supportedVersions.some((version) => /^v?1\.\d{1,6}(\.\d{1,6})?$/.test(version))) return undefined
  const versions = supportedVersions.slice(0, 8).join(', ').slice(0, 128)
  return `validation failed for CSI Driver ${name} at endpoint ${endpoint}: none of the CSI versions supported by this driver are supported: ${versions}`
}
