terraform {
  required_version = ">= 1.5"
}

# Where orders are kept.
resource "aws_s3_bucket" "orders" {
  bucket = "orders"

  lifecycle {
    prevent_destroy = true
  }
}

variable "region" { default = "eu" }

locals {
  tags = {
    shop = "yes"
  }
}
