/** What the kubelet says of drivers (pkg/volume/csi). */
export function driverNotFound(driver: string): string {
  const because = `driver name ${driver} not found in the list of registered CSI drivers`
  return `kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ${because}`
}
