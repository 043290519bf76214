/** The sentence of the kubelet about a driver that is missing (pkg/volume/csi/csi_mounter.go). */
export function driverNotFound(driver: string): string {
  const because = `driver name ${driver} not found in the list of registered CSI drivers`
  return `kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ${because}`
}
