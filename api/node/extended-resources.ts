/** Resources of a node that Kubernetes does not define: the devices of its agent, and those that an administrator adds. */

/** Devices are the extended resources with the prefix bramble.dev/. Others are only counted by the scheduler. */
export function isDevice(resource: string): boolean {
  return resource.startsWith('bramble.dev/')
}

/** As pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName. */
export function isExtendedResource(resource: string): boolean {
  const isNative = !resource.includes('/') || resource.includes('kubernetes.io/')
  return !isNative && !resource.startsWith('requests.')
}
